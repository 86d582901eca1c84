-- Jobs that are not found at the instant at which time changes something.
SELECT count(*) FROM acta.standing s
WHERE s.due_at IS DISTINCT FROM
      least(CASE s.state WHEN 2 THEN s.run_at WHEN 5 THEN s.wait_until ELSE s.lease_expires_at END,
            CASE WHEN s.fence = 0 AND s.state < 6 THEN s.expires_at END)
