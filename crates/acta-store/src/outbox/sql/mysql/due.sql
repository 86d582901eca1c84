SELECT id FROM {table} FORCE INDEX ({name}_due) WHERE until_ms <= {now} ORDER BY until_ms LIMIT $1
