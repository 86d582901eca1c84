SELECT e.*
FROM acta._exchange($1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, $2, $3, $4, $5, $6, $7) e
