-- The first held row of each line; a line whose first one is parked has been left behind. Nothing is joined to a text as its bound,
-- so that it is a value, and no column.
WITH RECURSIVE l (id, nth) AS (
    SELECT f.id, 1
    FROM (SELECT o.id FROM {table} o
          WHERE o.status IN (1, 2) AND o.lane IS NOT NULL AND (o.namespace, o.lane, o.id) > ($1, $2, 9223372036854775807)
          ORDER BY o.namespace, o.lane, o.id LIMIT 1) f
    UNION ALL
    SELECT (SELECT n.id FROM {table} n
            WHERE n.status IN (1, 2) AND n.lane IS NOT NULL
              AND (n.namespace, n.lane, n.id) > (p.namespace || '', p.lane || '', 9223372036854775807)
            ORDER BY n.namespace, n.lane, n.id LIMIT 1),
           l.nth + 1
    FROM l JOIN {table} p ON p.id = l.id
    WHERE l.nth < $3
)
SELECT p.namespace, p.lane, CASE WHEN p.status = 2 THEN p.id END
FROM l JOIN {table} p ON p.id = l.id
ORDER BY l.nth
