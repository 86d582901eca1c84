-- Of one definition, in claim order, out of the ready index alone.
SELECT s.job, s.state, s.place, s.priority, s.lane, s.lane_paused, s.paused, s.cancel_requested, s.attempts, s.max_attempts,
       s.retryable, s.fence, s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by,
       s.claimed_at, s.finished_at, s.retention_ms, s.prune_at, s.business, s.settled_mark, s.settled_state,
       s.settled_run_at, s.key_hold, s.has_detail,
       j.id, j.name, j.lane, j.key, j.dedup_key, j.payload, j.created_at, j.backoff, j.lease_ms
FROM acta_standing s INDEXED BY acta_ready JOIN acta_jobs j ON j.job = s.job
WHERE s.ns = ?1 AND s.name = ?2 AND s.state = 1 AND s.aside = 0
ORDER BY s.priority DESC, s.place
LIMIT ?3
