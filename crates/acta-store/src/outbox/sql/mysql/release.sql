UPDATE (SELECT id FROM {table} FORCE INDEX (PRIMARY) WHERE id {in 1} LIMIT 1000 FOR UPDATE SKIP LOCKED) free
STRAIGHT_JOIN {table} c FORCE INDEX (PRIMARY) ON c.id = free.id
SET c.status = 0, c.until_ms = NULL
WHERE c.status = 1 AND c.until_ms <= {now}
