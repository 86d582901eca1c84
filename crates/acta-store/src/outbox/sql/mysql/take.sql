UPDATE (SELECT id FROM {table} FORCE INDEX (PRIMARY) WHERE id {in 3} LIMIT 1000 FOR UPDATE SKIP LOCKED) free
STRAIGHT_JOIN {table} c FORCE INDEX (PRIMARY) ON c.id = free.id
SET c.status = 1, c.token = $1, c.until_ms = {now} + $2, c.first_taken_ms = coalesce(c.first_taken_ms, {now})
WHERE c.status = 0
