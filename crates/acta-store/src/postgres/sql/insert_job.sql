INSERT INTO acta.jobs (job, ns, id, is_foreign, name, lane, key, dedup_key, payload, created_at, backoff, lease_ms,
                       traceparent)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
