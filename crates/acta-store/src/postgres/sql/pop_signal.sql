DELETE FROM acta.signals
WHERE signal = (SELECT min(g.signal) FROM acta.signals g WHERE g.job = $1 AND g.name = $2)
RETURNING payload
