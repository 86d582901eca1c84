-- Those that are closed, or not known any more.
DELETE FROM acta.keys k
WHERE k.ctid = ANY (ARRAY(
        SELECT o.place
        FROM unnest($2::text[]) d (key)
        CROSS JOIN LATERAL (SELECT k.ctid AS place FROM acta.keys k WHERE k.ns = $1 AND k.key = d.key LIMIT 1) o))
  AND (k.state = 8 OR k.expires_at <= $3)
