UPDATE {table} SET status = 0
WHERE status = 2 AND id IN (SELECT p.id FROM {table} p WHERE p.namespace = $1 AND p.lane = $2 AND p.status = 2 ORDER BY p.id LIMIT $3)
