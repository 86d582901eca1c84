UPDATE acta.keys k SET id = d.id, state = d.state, digest = 0, expires_at = d.expires_at, job = NULL
FROM unnest($2::text[], $3::text[], $4::smallint[], $5::bigint[]) d (key, id, state, expires_at)
WHERE k.ns = $1 AND k.key = d.key
