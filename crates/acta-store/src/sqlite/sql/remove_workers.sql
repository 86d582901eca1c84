DELETE FROM acta_workers
WHERE ns = ?1 AND id IN (SELECT id FROM acta_workers WHERE ns = ?1 AND seen_at < ?2 ORDER BY id LIMIT ?3)
