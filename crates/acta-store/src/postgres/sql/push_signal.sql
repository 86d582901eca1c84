INSERT INTO acta.signals (job, name, payload) VALUES ($1, $2, $3)
