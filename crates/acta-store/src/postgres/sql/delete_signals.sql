DELETE FROM acta.signals WHERE job = $1
