SELECT j.id, j.name, j.lane, j.key, j.dedup_key, j.payload, j.created_at, j.backoff, j.lease_ms, j.traceparent
FROM acta.jobs j
WHERE j.job = $1
