SELECT id FROM {table} FORCE INDEX ({name}_status) WHERE status IN (1, 4) AND until_ms <= {now} LIMIT $1
