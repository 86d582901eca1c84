DELETE FROM acta.keys WHERE ns = $1 AND key = $2
