UPDATE acta.lanes SET live = $2, paused = $3 WHERE lane = $1
