SELECT acta._tend($1)
