SELECT g.job, g.name, g.payload FROM acta.signals g JOIN acta.standing s ON s.job = g.job WHERE s.ns = $1 ORDER BY g.signal
