-- In the order of the index, which an expiry may put before its job's own instant; so the first one found is only a bound.
WITH bound AS (
    SELECT CASE s.state WHEN 2 THEN s.run_at ELSE s.wait_until END AS at
    FROM acta.standing s
    WHERE s.ns = $1 AND s.due_at IS NOT NULL AND NOT (s.flags & 3 <> 0 OR (s.state = 5 AND s.wait_until IS NULL)) AND s.state IN (2, 5)
      AND ($2::integer[] IS NULL OR s.name = ANY ($2))
    ORDER BY s.due_at
    LIMIT 1
)
SELECT min(CASE s.state WHEN 2 THEN s.run_at ELSE s.wait_until END)
FROM acta.standing s, bound b
WHERE s.ns = $1 AND s.due_at <= b.at AND NOT (s.flags & 3 <> 0 OR (s.state = 5 AND s.wait_until IS NULL)) AND s.state IN (2, 5)
  AND ($2::integer[] IS NULL OR s.name = ANY ($2))
