-- As `look` finds the held rows of a line.
SELECT q.id
FROM unnest($1::text[], $2::text[]) l (namespace, lane)
CROSS JOIN LATERAL (
    SELECT f.id, f.status, first_value(f.status) OVER (ORDER BY f.id) AS head
    FROM (SELECT o.id, o.status FROM {table} o
          WHERE o.status IN (1, 2) AND o.namespace = l.namespace AND o.lane >= l.lane AND o.lane <= l.lane
          ORDER BY o.lane, o.id
          LIMIT (SELECT $3::bigint)) f) q
WHERE q.status = 2 AND q.head = 2
