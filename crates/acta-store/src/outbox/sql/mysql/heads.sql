SELECT c.id FROM {table} c FORCE INDEX (PRIMARY)
WHERE c.id {in 1} AND c.status = 2
  AND NOT coalesce(c.id > (SELECT o.id FROM {table} o FORCE INDEX ({name}_lane)
                    WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.status = 0 ORDER BY o.id LIMIT 1), FALSE)
  AND NOT coalesce(c.id > (SELECT o.id FROM {table} o FORCE INDEX ({name}_lane)
                    WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.status = 1 ORDER BY o.id LIMIT 1), FALSE)
  AND NOT coalesce(c.id > (SELECT o.id FROM {table} o FORCE INDEX ({name}_lane)
                    WHERE o.namespace = c.namespace AND o.lane = c.lane AND o.status = 2 ORDER BY o.id LIMIT 1), FALSE)
