UPDATE {table} SET status = 0, token = NULL, until_ms = NULL WHERE {free 1} AND status IN (1, 4) AND until_ms <= {now}
