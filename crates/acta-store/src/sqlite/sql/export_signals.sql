SELECT g.job, g.name, g.payload FROM acta_signals g JOIN acta_standing s ON s.job = g.job WHERE s.ns = ?1 ORDER BY g.signal
