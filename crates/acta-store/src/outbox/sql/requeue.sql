UPDATE {table} {by id}
SET status = 0, refusals = 0, first_taken_ms = NULL, quarantined_ms = NULL
WHERE id {in 1} AND status = 3
