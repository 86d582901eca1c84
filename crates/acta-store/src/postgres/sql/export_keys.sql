SELECT id, state, digest, expires_at, key FROM acta.keys WHERE ns = $1 AND id <> '' ORDER BY key
