DELETE FROM acta.keys WHERE ns = $1 AND key = ANY ($2)
