SELECT s.job, s.state, s.place, s.priority, coalesce(s.head_of, s.blocked_in), s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at
FROM acta_standing s INDEXED BY acta_expiries
WHERE s.ns = ?1 AND s.expires_by IS NOT NULL AND s.expires_by <= ?2
ORDER BY s.expires_by, s.place
LIMIT ?3
