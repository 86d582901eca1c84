UPDATE acta_names SET definition = ?2 WHERE number = ?1
