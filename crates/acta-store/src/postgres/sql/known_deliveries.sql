-- What is known of these deliveries: one look each, however many there are.
SELECT k.id, k.state, k.digest, k.expires_at, k.key
FROM unnest($2::text[]) d (key)
CROSS JOIN LATERAL (SELECT * FROM acta.keys o WHERE o.ns = $1 AND o.key = d.key LIMIT 1) k
