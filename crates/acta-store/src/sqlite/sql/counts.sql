SELECT counter, value FROM acta_counters WHERE ns = ?1 AND value > 0
