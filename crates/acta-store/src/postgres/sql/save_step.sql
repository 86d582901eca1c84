INSERT INTO acta.steps (job, name, value) VALUES ($1, $2, $3)
