SELECT state, business, jobs FROM acta_counts WHERE ns = ?1 AND jobs > 0
