-- The first held row of each line, by a comparison that only one index knows the way of: an estimate of how many there are would
-- lead elsewhere when it is old.
SELECT c.id, c.namespace, c.lane, coalesce(h.namespace = c.namespace AND h.lane = c.lane AND h.id < c.id, false)
FROM (SELECT id, namespace, lane FROM {table} WHERE status = 0 ORDER BY id LIMIT $1) c
LEFT JOIN LATERAL (
    SELECT o.namespace, o.lane, o.id FROM {table} o
    WHERE o.status IN (1, 2, 4) AND o.lane IS NOT NULL AND (o.namespace, o.lane, o.id) >= (c.namespace, c.lane, 0)
    ORDER BY o.namespace, o.lane, o.id
    LIMIT 1) h ON c.lane IS NOT NULL
ORDER BY c.id
