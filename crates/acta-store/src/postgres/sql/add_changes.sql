INSERT INTO acta.changes (ns, at, amounts) VALUES ($1, $2, $3)
