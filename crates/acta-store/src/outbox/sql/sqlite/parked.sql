SELECT q.id
FROM (SELECT o.id, o.status, first_value(o.status) OVER (ORDER BY o.id) AS head
      FROM (SELECT id, status FROM {table} INDEXED BY {name}_held
            WHERE namespace = $1 AND lane = $2 AND status IN (1, 2) ORDER BY id LIMIT $3) o) q
WHERE q.status = 2 AND q.head = 2
