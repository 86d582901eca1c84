INSERT INTO {table} (namespace, name, payload, lane, dedup_key, options) VALUES ($1, $2, $3, $4, $5, $6)
