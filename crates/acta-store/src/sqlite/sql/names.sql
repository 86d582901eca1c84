SELECT name FROM acta_names ORDER BY number
