SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, requeued_ms, quarantined_ms, fault
FROM {table}
WHERE status = 3 AND id > $1 AND ($2 IS NULL OR namespace = $2) AND ($3 IS NULL OR lane = $3) AND ($4 = 0 OR id {in 5})
ORDER BY id
LIMIT $6
