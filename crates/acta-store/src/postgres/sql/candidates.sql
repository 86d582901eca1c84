SELECT w.*
FROM acta.whole w
WHERE w.job = ANY (ARRAY(
    SELECT c.job FROM (
        (SELECT s.job, s.priority, s.place FROM acta.standing s
         WHERE s.ns = $1 AND s.state = 1 AND s.flags & 259 = 0 AND ($2::integer[] IS NULL OR s.name = ANY ($2))
           AND (s.expires_at IS NULL OR s.fence > 0 OR s.expires_at > $3)
         ORDER BY s.priority DESC, s.place LIMIT $4)
        UNION ALL
        (SELECT s.job, s.priority, s.place FROM acta.standing s
         WHERE s.ns = $1 AND s.state = 1 AND s.flags & 259 = 256 AND ($2::integer[] IS NULL OR s.name = ANY ($2))
           AND (s.expires_at IS NULL OR s.expires_at > $3)
         ORDER BY s.priority DESC, s.place LIMIT $4)) c
    ORDER BY c.priority DESC, c.place
    LIMIT $4))
ORDER BY w.priority DESC, w.place
