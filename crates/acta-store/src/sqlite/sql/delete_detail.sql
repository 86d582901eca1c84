DELETE FROM acta_details WHERE job = ?1
