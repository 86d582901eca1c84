SELECT setval('acta.numbers', greatest($1, 1), $1 > 0)
