SELECT openness FROM acta.ledger
