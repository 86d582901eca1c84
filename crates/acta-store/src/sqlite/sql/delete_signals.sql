DELETE FROM acta_signals WHERE job = ?1
