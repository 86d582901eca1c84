DELETE FROM acta.details WHERE job = $1
