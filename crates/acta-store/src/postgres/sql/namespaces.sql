SELECT ns, path, lease_ms, retention_ms, paused FROM acta.namespaces ORDER BY lower(path) COLLATE "C"
