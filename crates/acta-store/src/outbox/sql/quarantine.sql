UPDATE {table} {by id}
SET status = 3, token = NULL, until_ms = NULL, quarantined_ms = {now}, fault = $3
WHERE token = $1 AND {free 2} AND status = 1
