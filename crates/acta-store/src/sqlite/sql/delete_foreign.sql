DELETE FROM acta_foreign WHERE job = ?1
