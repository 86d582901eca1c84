UPDATE {table} {by id}
SET status = 1, until_ms = {now} + $2, refusals = refusals + 1, fault = $3
WHERE {free 1} AND status = 0
