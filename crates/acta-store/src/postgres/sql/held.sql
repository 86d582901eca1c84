SELECT j.id, s.lease_expires_at
FROM acta.standing s JOIN acta.jobs j ON j.job = s.job
WHERE s.ns = $1 AND s.due_at > $2 AND s.lease_expires_at > $2
LIMIT 1
