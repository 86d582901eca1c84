SELECT wait, progress, started_at, output, exception FROM acta.details WHERE job = $1
