INSERT INTO acta_workers (ns, id, robot, host, pid, version, concurrency, running, started_at, seen_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (ns, id) DO UPDATE
SET robot = excluded.robot, host = excluded.host, pid = excluded.pid, version = excluded.version,
    concurrency = excluded.concurrency, running = excluded.running, started_at = excluded.started_at,
    seen_at = excluded.seen_at
