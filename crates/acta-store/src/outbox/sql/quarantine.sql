UPDATE {table} {by id}
SET status = 3, until_ms = NULL, quarantined_ms = {now}, fault = $2
WHERE {free 1} AND status IN (0, 1, 2)
