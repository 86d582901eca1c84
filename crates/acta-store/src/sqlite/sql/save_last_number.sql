UPDATE acta_counters SET value = ?1 WHERE ns = 0 AND counter = 0
