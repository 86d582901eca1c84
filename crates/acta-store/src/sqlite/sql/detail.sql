SELECT wait, progress, started_at, output, exception FROM acta_details WHERE job = ?1
