INSERT INTO acta_signals (job, name, payload) VALUES (?1, ?2, ?3)
