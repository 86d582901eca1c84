DELETE FROM acta.lanes WHERE lane = $1
