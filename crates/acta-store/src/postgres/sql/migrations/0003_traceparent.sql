-- The trace that a job belongs to.
ALTER TABLE acta.jobs ADD COLUMN traceparent text;
DROP VIEW acta.whole;
CREATE VIEW acta.whole AS
SELECT s.job, s.state, s.place, s.priority, s.lane AS lane_number, s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at,
       j.id, j.name, j.lane, j.key, j.dedup_key, j.payload, j.created_at, j.backoff, j.lease_ms, j.traceparent,
       d.wait, d.progress, d.started_at, d.output, d.exception, s.ns
FROM acta.standing s
JOIN acta.jobs j ON j.job = s.job
LEFT JOIN acta.details d ON d.job = s.job AND s.flags & 32 <> 0;
