SELECT job, at, kind, lane, fence, actor, reason, run_at, exception FROM acta.events WHERE ns = $1 ORDER BY event
