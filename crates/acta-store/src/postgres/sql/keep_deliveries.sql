-- Those that nobody else has kept since the look.
INSERT INTO acta.keys AS k (ns, key, id, digest, state, expires_at)
SELECT $1::integer, d.key, d.id, 0, d.state, d.expires_at
FROM unnest($2::text[], $3::text[], $4::smallint[], $5::bigint[]) d (key, id, state, expires_at)
ORDER BY d.key
ON CONFLICT (ns, key) DO UPDATE
SET id = excluded.id, digest = 0, state = excluded.state, expires_at = excluded.expires_at, job = NULL
WHERE k.expires_at <= $6
