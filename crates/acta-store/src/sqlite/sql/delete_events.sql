DELETE FROM acta_events WHERE job = ?1
