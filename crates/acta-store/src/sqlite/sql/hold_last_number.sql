-- Changes nothing, and from then on nobody else writes.
UPDATE acta_counters SET value = value WHERE ns = 0 AND counter = 0 RETURNING value
