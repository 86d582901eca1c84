INSERT INTO acta.foreign_members (ns, job, name, value) VALUES ($1, $2, $3, $4)
