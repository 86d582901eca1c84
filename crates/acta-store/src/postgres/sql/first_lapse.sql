-- Flags: 1 paused, 2 lane paused, 4 cancel requested.
SELECT s.lease_expires_at
FROM acta.standing s
WHERE s.ns = $1 AND s.due_at IS NOT NULL AND s.lease_expires_at IS NOT NULL AND (s.flags & 4 <> 0 OR s.flags & 3 = 0)
  AND ($2::integer[] IS NULL OR s.name = ANY ($2))
ORDER BY s.due_at
LIMIT 1
