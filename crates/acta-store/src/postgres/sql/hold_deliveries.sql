INSERT INTO acta.keys AS k (ns, key, id, digest, state)
SELECT DISTINCT $1::integer, d, '', 0, 0 FROM unnest($2::text[]) d ORDER BY d
ON CONFLICT (ns, key) DO UPDATE SET digest = k.digest
RETURNING k.id, k.state, k.digest, k.expires_at, k.key
