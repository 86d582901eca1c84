UPDATE acta_numbers SET last = ?1 WHERE one = 1
