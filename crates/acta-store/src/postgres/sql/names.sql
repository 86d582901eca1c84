SELECT name, is_defined, lane, priority, max_attempts, retryable, backoff, lease_ms, retention_ms
FROM acta.names
ORDER BY number
