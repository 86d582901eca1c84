SELECT ns, path, settings, paused FROM acta_namespaces ORDER BY path
