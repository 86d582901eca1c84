SELECT acta._arrivals($1) IS NOT NULL
