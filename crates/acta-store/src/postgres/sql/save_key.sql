INSERT INTO acta.keys (ns, key, id, state, digest, expires_at, job)
VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $6::bigint IS NULL THEN $7::bigint END)
ON CONFLICT (ns, key) DO UPDATE
SET id = excluded.id, state = excluded.state, digest = excluded.digest, expires_at = excluded.expires_at, job = excluded.job
