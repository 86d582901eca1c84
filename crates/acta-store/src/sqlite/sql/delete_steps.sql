DELETE FROM acta_steps WHERE job = ?1
