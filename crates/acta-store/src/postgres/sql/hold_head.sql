SELECT 1 FROM acta.standing WHERE head_of = (SELECT l.lane FROM acta.lanes l WHERE l.ns = $1 AND l.name = $2) FOR UPDATE
