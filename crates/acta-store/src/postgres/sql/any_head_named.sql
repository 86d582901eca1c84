SELECT EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.late_place IS NOT NULL AND s.name = ANY ($2))
    OR EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.fresh_place IS NOT NULL AND s.name = ANY ($2))
    OR EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.aside IS NOT NULL AND s.name = ANY ($2))
    OR EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = $1 AND s.due_at IS NOT NULL AND s.state <> 0 AND s.name = ANY ($2))
