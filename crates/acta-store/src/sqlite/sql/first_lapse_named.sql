-- Flags: 1 paused, 2 lane paused, 4 cancel requested.
SELECT s.lease_expires_at
FROM acta_standing s INDEXED BY acta_leases
WHERE s.ns = ?1 AND s.lease_expires_at IS NOT NULL AND (s.flags & 4 OR NOT s.flags & 3) AND s.name = ?2
ORDER BY s.lease_expires_at
LIMIT 1
