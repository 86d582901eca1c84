SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, first_taken_ms, {now}
FROM {table} FORCE INDEX (PRIMARY)
WHERE token = $1 AND id {in 2} AND status = 1
ORDER BY id
