SELECT c.id, c.namespace, c.lane,
       c.lane IS NOT NULL AND EXISTS (SELECT 1 FROM {table} o INDEXED BY {name}_held
                                      WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.id < c.id AND o.status IN (1, 2, 4))
FROM (SELECT id, namespace, lane FROM {table} INDEXED BY {name}_pending WHERE status = 0 ORDER BY id LIMIT $1) c
ORDER BY c.id
