-- Estimates of how many rows there are may be old, and lead nowhere else: a limit that the planner does not know makes it follow the
-- index, instead of sorting all that is there; and the first held row of a line is asked for once a row, by a range of lanes that is
-- one lane, whose order only one index has.
WITH c AS MATERIALIZED (
    SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, requeued_ms
    FROM {table}
    WHERE status = 0 AND id <> ALL ($2::bigint[])
    ORDER BY id
    LIMIT (SELECT $1::bigint)
)
SELECT c.*,
       (SELECT o.id FROM {table} o
        WHERE o.status IN (1, 2) AND o.namespace = c.namespace AND o.lane >= c.lane AND o.lane <= c.lane
        ORDER BY o.lane, o.id
        LIMIT 1)
FROM c
ORDER BY c.id
