SELECT status, count(*), min(staged_ms) FROM {table} GROUP BY status
