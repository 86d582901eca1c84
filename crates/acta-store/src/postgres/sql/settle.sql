SELECT fault, state, run_at, fence, holder, drew
FROM acta._settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
