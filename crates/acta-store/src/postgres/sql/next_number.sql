SELECT nextval('acta.numbers')
