SELECT l.namespace, l.lane,
       (SELECT p.id FROM {table} p FORCE INDEX ({name}_lane)
        WHERE p.namespace = l.namespace AND p.lane = l.lane AND p.status = 2 ORDER BY p.id LIMIT 1)
FROM (SELECT DISTINCT namespace, lane FROM {table} FORCE INDEX ({name}_lane)
      WHERE lane IS NOT NULL AND ((namespace = $1 AND lane > $2) OR namespace > $1)
      ORDER BY namespace, lane LIMIT $3) l
ORDER BY l.namespace, l.lane
