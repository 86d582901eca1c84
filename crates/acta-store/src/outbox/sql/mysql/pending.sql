SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, requeued_ms
FROM {table} FORCE INDEX (PRIMARY)
WHERE id {in 1} AND status = 0
ORDER BY id
