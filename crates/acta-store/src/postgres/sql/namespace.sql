SELECT ns, path, lease_ms, retention_ms, paused FROM acta.namespaces WHERE lower(path) = lower($1)
