DELETE FROM acta.workers WHERE ns = $1 AND id = $2
