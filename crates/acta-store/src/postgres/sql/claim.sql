SELECT c.* FROM acta._claim($1, $2, $3, $4, $5, $6, $7) c
