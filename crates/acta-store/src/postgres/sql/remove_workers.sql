DELETE FROM acta.workers w
WHERE w.ns = $1 AND w.id IN (SELECT o.id FROM acta.workers o WHERE o.ns = $1 AND o.seen_at < $2 ORDER BY o.id LIMIT $3)
