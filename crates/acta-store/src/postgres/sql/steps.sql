SELECT name, value FROM acta.steps WHERE job = $1 ORDER BY step
