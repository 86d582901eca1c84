UPDATE {table} SET status = 2 WHERE id {in 1} AND status = 0
