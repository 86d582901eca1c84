SELECT q.id
FROM unnest($1::text[], $2::text[]) l (namespace, lane)
CROSS JOIN LATERAL (
    SELECT f.id, f.status, first_value(f.status) OVER (ORDER BY f.id) AS head
    FROM (SELECT o.id, o.status, o.namespace, o.lane FROM {table} o
          WHERE o.status IN (1, 2) AND o.lane IS NOT NULL AND (o.namespace, o.lane, o.id) >= (l.namespace, l.lane, 0)
          ORDER BY o.namespace, o.lane, o.id
          LIMIT $3) f
    WHERE f.namespace = l.namespace AND f.lane = l.lane) q
WHERE q.status = 2 AND q.head = 2
