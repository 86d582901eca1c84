SELECT key, id, state, digest, expires_at FROM acta_keys WHERE ns = ?1 ORDER BY key
