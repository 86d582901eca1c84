INSERT INTO acta_lanes (ns, name, live, paused) VALUES (?1, ?2, 0, 0)
