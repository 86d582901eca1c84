SELECT lane, live, paused FROM acta_lanes WHERE ns = ?1 AND name = ?2
