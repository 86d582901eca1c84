SELECT acta._admit($1, $2)
