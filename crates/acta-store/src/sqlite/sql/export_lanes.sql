SELECT lane, name, live, paused FROM acta_lanes WHERE ns = ?1 ORDER BY name
