-- Flags: 2 lane paused, 4 cancel requested. ?4: lapses are reclaimed here; otherwise only requested cancels are carried out.
SELECT s.job, s.state, s.place, s.priority, coalesce(s.head_of, s.blocked_in), s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at
FROM acta_standing s INDEXED BY acta_leases
WHERE s.ns = ?1 AND s.lease_expires_at IS NOT NULL AND s.lease_expires_at <= ?2
  AND (s.flags & 4 OR (?4 AND NOT s.flags & 2))
ORDER BY s.lease_expires_at, s.place
LIMIT ?3
