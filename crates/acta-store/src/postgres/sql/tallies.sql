-- What is counted, and what has changed since it was.
SELECT t.counter, sum(t.value)::bigint
FROM (SELECT c.counter, c.value FROM acta.counts c WHERE c.ns = $1
      UNION ALL
      SELECT (a.nth - 1)::smallint, a.amount
      FROM acta.changes g CROSS JOIN LATERAL unnest(g.amounts) WITH ORDINALITY a (amount, nth)
      WHERE g.ns = $1 AND a.amount <> 0) t
GROUP BY t.counter
HAVING sum(t.value) > 0
