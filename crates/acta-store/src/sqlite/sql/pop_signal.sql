DELETE FROM acta_signals
WHERE signal = (SELECT min(signal) FROM acta_signals WHERE job = ?1 AND name = ?2)
RETURNING payload
