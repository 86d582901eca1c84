SELECT s.due_at
FROM acta_standing s INDEXED BY acta_due
WHERE s.ns = ?1 AND s.due_at IS NOT NULL AND s.aside IS NULL
ORDER BY s.due_at
LIMIT 1
