SELECT t.job, t.name, t.value FROM acta_steps t JOIN acta_standing s ON s.job = t.job WHERE s.ns = ?1 ORDER BY t.step
