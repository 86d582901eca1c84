SELECT s.job, s.state, s.place, s.priority, s.lane, s.flags, s.attempts, s.max_attempts, s.fence, s.lost_leases, s.run_at,
       s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at, s.finished_at, s.retention_ms, s.prune_at,
       s.settled, s.settled_run_at
FROM acta.standing s
WHERE s.job IN (
    SELECT * FROM (SELECT r.job FROM acta.standing r WHERE r.ns = $1 AND r.state = 1 AND r.flags & 259 = 256 LIMIT $2) a
    UNION ALL
    SELECT * FROM (SELECT r.job FROM acta.standing r WHERE r.ns = $1 AND r.state = 1 AND r.flags & 259 = 0 LIMIT $2) b
    UNION ALL
    SELECT * FROM (SELECT r.job FROM acta.standing r WHERE r.ns = $1 AND r.state IN (1, 2, 5) AND (r.flags & 3 <> 0 OR (r.state = 5 AND r.wait_until IS NULL)) LIMIT $2) c
    UNION ALL
    SELECT * FROM (SELECT r.job FROM acta.standing r
                   WHERE r.ns = $1 AND r.due_at IS NOT NULL AND r.state <> 0 ORDER BY r.due_at LIMIT $2) d)
ORDER BY s.place
LIMIT $2
