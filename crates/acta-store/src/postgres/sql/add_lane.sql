-- Whoever made it meanwhile has made the same.
INSERT INTO acta.lanes AS l (ns, name, live) VALUES ($1, $2, 0)
ON CONFLICT (ns, name) DO UPDATE SET live = l.live
RETURNING lane, name, live, paused
