UPDATE {table} {by id} SET status = 2, token = NULL, until_ms = NULL WHERE token = $1 AND {free 2} AND status = 1
