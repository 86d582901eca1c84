SELECT id, state, digest, expires_at FROM acta.keys WHERE ns = $1 AND key = $2 AND id <> ''
