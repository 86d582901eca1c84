SELECT openness FROM acta_ledger
