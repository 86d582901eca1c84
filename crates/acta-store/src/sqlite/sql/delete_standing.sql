DELETE FROM acta_standing WHERE job = ?1
