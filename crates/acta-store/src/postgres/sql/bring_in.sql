SELECT acta._bring_in($1, $2, $3)
