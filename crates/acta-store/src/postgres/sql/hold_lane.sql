SELECT 1 FROM acta.lanes WHERE ns = $1 AND name = $2 FOR UPDATE
