SELECT lane, name, live, paused FROM acta.lanes WHERE ns = $1 AND name > $2 AND (live > 0 OR paused) ORDER BY name LIMIT $3
