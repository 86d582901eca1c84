DELETE FROM acta_keys WHERE ns = ?1 AND key = ?2
