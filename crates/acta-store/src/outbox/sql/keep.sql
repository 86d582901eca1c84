INSERT INTO {table}_discarded
    (id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, quarantined_ms, fault,
     discarded_ms, actor, reason)
SELECT id, message, namespace, name, payload, lane, dedup_key, options, refusals, staged_ms, quarantined_ms, fault,
       {now}, $2, $3
FROM {table}
WHERE id {in 1} AND status = 3 AND message NOT IN (SELECT d.message FROM {table}_discarded d)
