DELETE FROM acta_minutes
WHERE ns = ?1 AND minute IN (SELECT minute FROM acta_minutes WHERE ns = ?1 AND minute < ?2 ORDER BY minute LIMIT ?3)
