SELECT acta._numbers($1)
