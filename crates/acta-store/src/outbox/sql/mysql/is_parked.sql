SELECT id FROM {table} FORCE INDEX ({name}_status) WHERE status = 2 LIMIT 1
