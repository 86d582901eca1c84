-- What is folded, and what has changed since.
SELECT t.minute, sum(t.added)::bigint, sum(t.claimed)::bigint, sum(t.succeeded)::bigint, sum(t.failed)::bigint,
       sum(t.cancelled)::bigint
FROM (SELECT m.minute, m.added, m.claimed, m.succeeded, m.failed, m.cancelled
      FROM acta.minutes m WHERE m.ns = $1 AND m.minute >= $2
      UNION ALL
      SELECT g.at / 60000, f.added, f.claimed, f.succeeded, f.failed, f.cancelled
      FROM acta.changes g CROSS JOIN LATERAL acta._flow(g.amounts) f
      WHERE g.ns = $1 AND g.at >= $2 * 60000) t
GROUP BY t.minute
HAVING sum(t.added + t.claimed + t.succeeded + t.failed + t.cancelled) > 0
ORDER BY t.minute
