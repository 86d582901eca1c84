DELETE FROM acta.steps WHERE job = $1
