SELECT s.job, s.state, s.place, s.priority, coalesce(s.head_of, s.blocked_in), s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at
FROM acta_standing s
WHERE s.job IN (
    SELECT * FROM (SELECT r.job FROM acta_standing r INDEXED BY acta_ready
                   WHERE r.ns = ?1 AND r.ready_place IS NOT NULL LIMIT ?2)
    UNION ALL
    SELECT * FROM (SELECT a.job FROM acta_standing a INDEXED BY acta_aside
                   WHERE a.ns = ?1 AND a.aside IS NOT NULL LIMIT ?2)
    UNION ALL
    SELECT * FROM (SELECT l.job FROM acta_standing l INDEXED BY acta_leases
                   WHERE l.ns = ?1 AND l.lease_expires_at IS NOT NULL LIMIT ?2)
    UNION ALL
    SELECT * FROM (SELECT d.job FROM acta_standing d INDEXED BY acta_due
                   WHERE d.ns = ?1 AND d.due_at IS NOT NULL LIMIT ?2))
ORDER BY s.place
LIMIT ?2
