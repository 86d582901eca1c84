-- Those that are closed, or not known any more.
DELETE FROM acta.keys k WHERE k.ns = $1 AND k.key = ANY ($2) AND (k.state = 8 OR k.expires_at <= $3)
