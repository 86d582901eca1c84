-- The answers side by side: a thousand rows cost more than what they say.
SELECT array_agg(e.id), array_agg(e.created), array_agg(e.state), array_agg(e.payload_differs)
FROM acta._enqueue($1, true, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) e
