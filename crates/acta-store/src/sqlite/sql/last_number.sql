SELECT value FROM acta_counters WHERE ns = 0 AND counter = 0
