DELETE FROM acta_lanes WHERE lane = ?1
