SELECT id, state, digest, expires_at FROM acta_keys WHERE ns = ?1 AND key = ?2
