INSERT INTO acta_names (name) VALUES (?1)
