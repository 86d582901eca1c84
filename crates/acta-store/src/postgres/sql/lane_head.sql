SELECT s.job, s.state, s.place, s.priority, s.lane, s.flags, s.attempts, s.max_attempts, s.fence, s.lost_leases, s.run_at,
       s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at, s.finished_at, s.retention_ms, s.prune_at,
       s.settled, s.settled_run_at
FROM acta.standing s
WHERE s.lane = $1 AND s.state BETWEEN 1 AND 5
