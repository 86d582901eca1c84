-- The order alone, covered by the index; used where several definitions are merged.
SELECT s.priority, s.ready_place, s.job
FROM acta_standing s INDEXED BY acta_ready
WHERE s.ns = ?1 AND s.name = ?2 AND s.ready_place IS NOT NULL
ORDER BY s.priority DESC, s.ready_place
LIMIT ?3
