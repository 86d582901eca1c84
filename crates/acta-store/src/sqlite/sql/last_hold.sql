SELECT job, at, kind, lane, fence, actor, reason, run_at, exception
FROM acta_events
WHERE ns = ?1 AND lane IS ?2 AND job IS NULL
ORDER BY event DESC
LIMIT 1
