SELECT acta._let_go($1, $2, $3)
