-- The last condition: under a pause of the queue only requested cancels are carried out.
SELECT s.job, s.state, s.place, s.priority, s.lane, s.flags, s.attempts, s.max_attempts, s.fence, s.lost_leases, s.run_at,
       s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at, s.finished_at, s.retention_ms, s.prune_at,
       s.settled, s.settled_run_at
FROM acta.standing s
WHERE s.ns = $1 AND s.due_at <= $2
  AND (s.state NOT IN (3, 4) OR s.flags & 4 <> 0 OR ($3 AND s.flags & 2 = 0))
ORDER BY s.due_at, s.place
LIMIT $4
