SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, nullif(staged_ms, staged_ms), quarantined_ms, fault,
       discarded_ms, actor, reason
FROM {table}_discarded
WHERE id > $1 AND ($2 IS NULL OR namespace = $2) AND ($3 IS NULL OR lane = $3) AND ($4 = 0 OR id {in 5})
ORDER BY id
LIMIT $6
