UPDATE acta.namespaces SET lease_ms = $2, retention_ms = $3 WHERE ns = $1
