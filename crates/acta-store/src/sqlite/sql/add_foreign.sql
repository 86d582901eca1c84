INSERT INTO acta_foreign (ns, job, name, value) VALUES (?1, ?2, ?3, ?4)
