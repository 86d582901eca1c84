SELECT ns, path, settings, paused FROM acta_namespaces WHERE ns = ?1
