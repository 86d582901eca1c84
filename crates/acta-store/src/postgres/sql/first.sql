SELECT acta._first($1, $2, $3)
