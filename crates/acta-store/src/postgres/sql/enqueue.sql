SELECT id, created, state, payload_differs
FROM acta._enqueue($1, true, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
