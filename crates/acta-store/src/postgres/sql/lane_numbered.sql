SELECT lane, name, live, paused FROM acta.lanes WHERE lane = $1
