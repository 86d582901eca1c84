WITH RECURSIVE l (namespace, lane, nth) AS (
    SELECT * FROM (SELECT namespace, lane, 1 FROM {table}
                   WHERE lane IS NOT NULL AND (namespace, lane) > ($1, $2) ORDER BY namespace, lane LIMIT 1) f
    UNION ALL
    SELECT (SELECT n.namespace FROM {table} n
            WHERE n.lane IS NOT NULL AND (n.namespace, n.lane) > (l.namespace, l.lane) ORDER BY n.namespace, n.lane LIMIT 1),
           (SELECT n.lane FROM {table} n
            WHERE n.lane IS NOT NULL AND (n.namespace, n.lane) > (l.namespace, l.lane) ORDER BY n.namespace, n.lane LIMIT 1),
           l.nth + 1
    FROM l WHERE l.lane IS NOT NULL AND l.nth < $3
)
SELECT l.namespace, l.lane,
       (SELECT min(p.id) FROM {table} p WHERE p.namespace = l.namespace AND p.lane = l.lane AND p.status = 2)
FROM l WHERE l.lane IS NOT NULL
