INSERT INTO acta_steps (job, name, value) VALUES (?1, ?2, ?3)
