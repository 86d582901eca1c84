SELECT s.job, s.state, s.place, s.priority, coalesce(s.head_of, s.blocked_in), s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at,
       j.id, j.name, j.lane, j.key, j.dedup_key, j.payload, j.created_at, j.backoff, j.lease_ms, j.traceparent
FROM acta_standing s JOIN acta_jobs j ON j.job = s.job
WHERE s.job = ?1
