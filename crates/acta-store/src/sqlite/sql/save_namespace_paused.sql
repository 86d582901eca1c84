UPDATE acta_namespaces SET paused = ?2 WHERE ns = ?1
