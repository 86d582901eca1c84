INSERT INTO acta_namespaces (path, settings) VALUES (?1, '{}')
