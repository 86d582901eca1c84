-- A job of any age, as it comes with a copy.
INSERT INTO acta_standing (
    state, place, priority, flags, attempts, max_attempts, fence, lost_leases, run_at, expires_at,
    wait_until, lease_expires_at, claimed_by, claimed_at, finished_at, retention_ms, prune_at, settled,
    settled_run_at, ready_place, due_at, expires_by, aside, head_of, blocked_in, unsuccessful, job, ns,
    name
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
