UPDATE acta.names
SET is_defined = true, lane = $2, priority = $3, max_attempts = $4, retryable = $5, backoff = $6, lease_ms = $7,
    retention_ms = $8
WHERE name = $1
