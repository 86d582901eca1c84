SELECT ns, path, lease_ms, retention_ms, paused FROM acta._ensure_namespace($1)
