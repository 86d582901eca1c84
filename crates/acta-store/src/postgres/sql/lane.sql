SELECT lane, name, live, paused FROM acta.lanes WHERE ns = $1 AND name = $2
