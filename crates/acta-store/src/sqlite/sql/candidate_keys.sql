-- The order alone, covered by the index; used where several definitions are merged.
SELECT s.priority, s.place, s.job
FROM acta_standing s INDEXED BY acta_ready
WHERE s.ns = ?1 AND s.name = ?2 AND s.state = 1 AND s.aside = 0
ORDER BY s.priority DESC, s.place
LIMIT ?3
