SELECT lane, name, live, paused FROM acta_lanes WHERE ns = ?1 AND name > ?2 ORDER BY name LIMIT ?3
