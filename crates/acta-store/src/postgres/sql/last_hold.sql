SELECT job, at, kind, lane, fence, actor, reason, run_at, exception
FROM acta.events
WHERE ns = $1 AND lane IS NOT DISTINCT FROM $2 AND job IS NULL
ORDER BY event DESC
LIMIT 1
