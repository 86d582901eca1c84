INSERT OR FAIL INTO acta_jobs (job, id, name, lane, key, dedup_key, created_at, backoff, lease_ms, traceparent, is_foreign, ns, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
