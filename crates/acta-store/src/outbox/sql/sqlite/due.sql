SELECT id FROM {table} WHERE until_ms IS NOT NULL AND until_ms <= (SELECT {now}) ORDER BY until_ms LIMIT $1
