-- The first held row of each line, by a comparison that only one index knows the way of: an estimate of how many there are would
-- lead elsewhere when it is old.
WITH c AS MATERIALIZED (
    SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, requeued_ms
    FROM {table}
    WHERE status = 0 AND id <> ALL ($2::bigint[])
    ORDER BY id
    LIMIT $1
), h AS (
    SELECT l.namespace, l.lane, f.id
    FROM (SELECT DISTINCT namespace, lane FROM c WHERE lane IS NOT NULL) l
    CROSS JOIN LATERAL (
        SELECT o.namespace, o.lane, o.id FROM {table} o
        WHERE o.status IN (1, 2) AND o.lane IS NOT NULL AND (o.namespace, o.lane, o.id) >= (l.namespace, l.lane, 0)
        ORDER BY o.namespace, o.lane, o.id
        LIMIT 1) f
    WHERE f.namespace = l.namespace AND f.lane = l.lane
)
SELECT c.*, h.id
FROM c LEFT JOIN h ON h.namespace = c.namespace AND h.lane = c.lane
ORDER BY c.id
