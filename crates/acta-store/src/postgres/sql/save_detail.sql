INSERT INTO acta.details (job, wait, progress, started_at, output, exception)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (job) DO UPDATE
SET wait = excluded.wait, progress = excluded.progress, started_at = excluded.started_at, output = excluded.output,
    exception = excluded.exception
