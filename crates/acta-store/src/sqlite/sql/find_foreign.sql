SELECT s.job, s.state, s.place, s.priority, coalesce(s.head_of, s.blocked_in), s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at
FROM acta_jobs j JOIN acta_standing s ON s.job = j.job
WHERE j.is_foreign = 1 AND j.id = ?1 AND s.ns = ?2
