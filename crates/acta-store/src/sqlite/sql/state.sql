SELECT s.state FROM acta_jobs j JOIN acta_standing s ON s.job = j.job
WHERE (j.job = ?1 AND j.id = ?2) OR (j.is_foreign = 1 AND j.id = ?2)
