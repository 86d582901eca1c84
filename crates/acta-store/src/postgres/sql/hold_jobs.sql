SELECT acta._hold_jobs($1, $2, $3, $4, $5)
