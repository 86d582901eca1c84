DELETE FROM acta.minutes m
WHERE m.ns = $1 AND m.minute IN (SELECT o.minute FROM acta.minutes o WHERE o.ns = $1 AND o.minute < $2 ORDER BY o.minute LIMIT $3)
