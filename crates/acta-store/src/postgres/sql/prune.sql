SELECT pruned, freed FROM acta._prune($1, $2, $3)
