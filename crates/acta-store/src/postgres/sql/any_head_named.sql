SELECT EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.state = 1 AND s.flags & 259 = 0 AND s.name = ANY ($2))
    OR EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.state = 1 AND s.flags & 259 = 256 AND s.name = ANY ($2))
    OR EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.state IN (1, 2, 5) AND (s.flags & 3 <> 0 OR (s.state = 5 AND s.wait_until IS NULL)) AND s.name = ANY ($2))
    OR EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.due_at IS NOT NULL AND s.state <> 0 AND s.name = ANY ($2))
