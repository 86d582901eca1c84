-- The next definition that has a candidate: called until there is none, it steps from name to name, not from job to job.
SELECT s.name
FROM acta_standing s INDEXED BY acta_ready
WHERE s.ns = ?1 AND s.name > ?2 AND s.ready_place IS NOT NULL
ORDER BY s.name
LIMIT 1
