UPDATE {table} {by id}
SET status = 0, refusals = 0, requeued_ms = {now}, quarantined_ms = NULL
WHERE id {in 1} AND status = 3
