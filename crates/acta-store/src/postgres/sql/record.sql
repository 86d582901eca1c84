INSERT INTO acta.events (ns, job, at, kind, lane, fence, actor, reason, run_at, exception)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
