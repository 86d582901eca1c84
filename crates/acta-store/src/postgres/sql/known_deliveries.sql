-- What is known of these deliveries.
SELECT k.id, k.state, k.digest, k.expires_at, k.key FROM acta.keys k WHERE k.ns = $1 AND k.key = ANY ($2)
