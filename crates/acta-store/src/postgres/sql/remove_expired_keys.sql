DELETE FROM acta.keys k WHERE (k.ns, k.key) IN (
    SELECT e.ns, e.key FROM acta.keys e WHERE e.ns = $1 AND e.expires_at <= $2 ORDER BY e.expires_at, e.key LIMIT $3)
