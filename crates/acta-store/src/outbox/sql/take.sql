UPDATE {table}
SET status = 1, token = $1, until_ms = {now} + $2, first_taken_ms = coalesce(first_taken_ms, {now})
WHERE {free 3} AND status = 0
RETURNING id, message, namespace, name, payload, lane, dedup_key, options, refusals, first_taken_ms
