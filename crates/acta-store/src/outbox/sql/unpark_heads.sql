UPDATE {table} SET status = 0
WHERE id {in 1} AND status = 2
  AND NOT EXISTS (SELECT 1 FROM {table} o
                  WHERE o.namespace = {table}.namespace AND o.lane = {table}.lane AND o.id < {table}.id AND o.status IN (0, 1, 2, 4))
