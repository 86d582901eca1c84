SELECT c.id, c.message, c.namespace, c.name, c.payload, c.lane, c.dedup_key, c.options, c.refusals, c.staged_ms, c.requeued_ms,
       CASE WHEN c.lane IS NOT NULL THEN (SELECT o.id FROM {table} o INDEXED BY {name}_held
                                          WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.status IN (1, 2)
                                          ORDER BY o.id LIMIT 1) END
FROM {table} c INDEXED BY {name}_pending
WHERE c.status = 0
ORDER BY c.id
LIMIT $1
