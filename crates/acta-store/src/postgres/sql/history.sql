SELECT job, at, kind, lane, fence, actor, reason, run_at, exception
FROM acta.events
WHERE job = $1
ORDER BY event
