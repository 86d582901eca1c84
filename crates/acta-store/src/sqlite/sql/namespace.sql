SELECT ns, path, settings, paused FROM acta_namespaces WHERE path = ?1
