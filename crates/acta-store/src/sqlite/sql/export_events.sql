SELECT job, at, kind, lane, fence, actor, reason, run_at, exception FROM acta_events WHERE ns = ?1 ORDER BY event
