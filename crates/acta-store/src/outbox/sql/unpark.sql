UPDATE {table} SET status = 0 WHERE {free 1} AND status = 2
