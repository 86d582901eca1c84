UPDATE {table} {by id}
SET status = 4, token = NULL, until_ms = {now} + $3, refusals = refusals + 1, fault = $4
WHERE token = $1 AND {free 2} AND status = 1
