UPDATE acta.ledger SET openness = $1, is_open = $2
