UPDATE {table} SET status = 0, until_ms = NULL WHERE {free 1} AND status = 1 AND until_ms <= {now}
