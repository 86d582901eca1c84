DELETE FROM {table} WHERE id = $1 AND message = $2
