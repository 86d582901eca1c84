UPDATE acta_ledger SET openness = ?1
