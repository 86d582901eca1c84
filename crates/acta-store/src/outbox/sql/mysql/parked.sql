(SELECT id FROM {table} FORCE INDEX ({name}_lane) WHERE namespace = $1 AND lane = $2 AND status = 2 ORDER BY id LIMIT $3)
