SELECT job, name, value FROM acta_foreign WHERE ns = ?1 ORDER BY member
