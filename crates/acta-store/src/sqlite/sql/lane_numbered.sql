SELECT name, live, paused FROM acta_lanes WHERE lane = ?1
