UPDATE {table} {by id} SET status = 2 WHERE {free 1} AND status = 0
