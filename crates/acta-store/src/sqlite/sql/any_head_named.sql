-- Every head is ready, aside, leased or due: four short looks.
SELECT EXISTS (SELECT 1 FROM acta_standing s INDEXED BY acta_ready
               WHERE s.ns = ?1 AND s.name = ?2 AND s.ready_place IS NOT NULL)
    OR EXISTS (SELECT 1 FROM acta_standing s INDEXED BY acta_aside
               WHERE s.ns = ?1 AND s.name = ?2 AND s.aside IS NOT NULL)
    OR EXISTS (SELECT 1 FROM acta_standing s INDEXED BY acta_leases
               WHERE s.ns = ?1 AND s.name = ?2 AND s.lease_expires_at IS NOT NULL)
    OR EXISTS (SELECT 1 FROM acta_standing s INDEXED BY acta_due
               WHERE s.ns = ?1 AND s.name = ?2 AND s.due_at IS NOT NULL)
