INSERT OR FAIL INTO acta_keys (ns, key, id, state, digest, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (ns, key) DO UPDATE
SET id = excluded.id, state = excluded.state, digest = excluded.digest, expires_at = excluded.expires_at
