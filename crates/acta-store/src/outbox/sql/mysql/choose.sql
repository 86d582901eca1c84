SELECT c.id,
       (SELECT o.id FROM {table} o FORCE INDEX ({name}_lane)
        WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.status = 1 ORDER BY o.id LIMIT 1),
       (SELECT o.id FROM {table} o FORCE INDEX ({name}_lane)
        WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.status = 2 ORDER BY o.id LIMIT 1)
FROM (SELECT id, namespace, lane FROM {table} FORCE INDEX ({name}_status) WHERE status = 0 ORDER BY id LIMIT $1) c
ORDER BY c.id
