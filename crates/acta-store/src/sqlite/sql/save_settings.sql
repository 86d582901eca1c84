UPDATE acta_namespaces SET settings = ?2 WHERE ns = ?1
