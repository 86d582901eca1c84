SELECT id, robot, host, pid, version, concurrency, running, started_at, seen_at
FROM acta_workers
WHERE ns = ?1
ORDER BY seen_at DESC, id
LIMIT ?2
