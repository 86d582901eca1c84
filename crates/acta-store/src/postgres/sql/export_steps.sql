SELECT t.job, t.name, t.value FROM acta.steps t JOIN acta.standing s ON s.job = t.job WHERE s.ns = $1 ORDER BY t.step
