UPDATE acta_standing
SET state = ?1, place = ?2, priority = ?3, lane = ?4, lane_paused = ?5, paused = ?6, cancel_requested = ?7,
    attempts = ?8, max_attempts = ?9, retryable = ?10, fence = ?11, lost_leases = ?12, run_at = ?13, expires_at = ?14,
    wait_until = ?15, lease_expires_at = ?16, claimed_by = ?17, claimed_at = ?18, finished_at = ?19,
    retention_ms = ?20, prune_at = ?21, business = ?22, settled_mark = ?23, settled_state = ?24, settled_run_at = ?25,
    key_hold = ?26, has_detail = ?27, aside = ?28, due_at = ?29
WHERE job = ?30
