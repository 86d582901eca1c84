SELECT j.id, s.lease_expires_at
FROM acta_standing s INDEXED BY acta_leases JOIN acta_jobs j ON j.job = s.job
WHERE s.ns = ?1 AND s.lease_expires_at > ?2
LIMIT 1
