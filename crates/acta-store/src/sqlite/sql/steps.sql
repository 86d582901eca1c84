SELECT name, value FROM acta_steps WHERE job = ?1 ORDER BY step
