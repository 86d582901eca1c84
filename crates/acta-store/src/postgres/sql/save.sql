-- Whatever the rules have changed by themselves is not fresh any more: the claim scan finds it in the index of late ones.
UPDATE acta.standing
SET state = $2, place = $3, priority = $4, lane = $5, flags = $6, attempts = $7, max_attempts = $8, fence = $9,
    lost_leases = $10, run_at = $11, expires_at = $12, wait_until = $13, lease_expires_at = $14, claimed_by = $15,
    claimed_at = $16, finished_at = $17, retention_ms = $18, prune_at = $19, settled = $20, settled_run_at = $21, due_at = $22,
    arriving = CASE WHEN $2 >= 6 THEN NULL ELSE arriving END
WHERE job = $1
