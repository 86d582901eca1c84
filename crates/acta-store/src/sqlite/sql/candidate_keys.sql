-- The order alone; used where several definitions are merged.
SELECT s.priority, s.ready_place, s.job
FROM acta_standing s INDEXED BY acta_ready
WHERE s.ns = ?1 AND s.name = ?2 AND s.ready_place IS NOT NULL
  AND (s.expires_by IS NULL OR s.expires_by > ?4)
ORDER BY s.priority DESC, s.ready_place
LIMIT ?3
