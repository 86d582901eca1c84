SELECT minute, added, claimed, succeeded, failed, cancelled FROM acta_minutes WHERE ns = ?1 AND minute >= ?2 ORDER BY minute
