UPDATE {table} SET status = 0
WHERE status = 2 AND id IN (
    SELECT q.id FROM unnest($1::text[], $2::text[]) l (namespace, lane)
    CROSS JOIN LATERAL (SELECT p.id FROM {table} p WHERE p.namespace = l.namespace AND p.lane = l.lane AND p.status = 2
                        ORDER BY p.id LIMIT $3) q)
