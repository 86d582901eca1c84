INSERT INTO acta_counters (ns, counter, value)
VALUES (?1, ?2, ?3)
ON CONFLICT (ns, counter) DO UPDATE SET value = value + excluded.value
