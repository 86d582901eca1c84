SELECT s.job, s.state, s.place, s.priority, coalesce(s.head_of, s.blocked_in), s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at
FROM acta_standing s INDEXED BY acta_due
WHERE s.ns = ?1 AND s.due_at IS NOT NULL AND s.due_at <= ?2
ORDER BY s.due_at, s.place
LIMIT ?3
