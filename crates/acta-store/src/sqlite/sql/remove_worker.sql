DELETE FROM acta_workers WHERE ns = ?1 AND id = ?2
