SELECT 1 FROM acta.standing WHERE state BETWEEN 1 AND 5 AND lane = (SELECT l.lane FROM acta.lanes l WHERE l.ns = $1 AND l.name = $2) FOR UPDATE
