SELECT job, name, value FROM acta.foreign_members WHERE ns = $1 ORDER BY member
