SELECT w.* FROM acta.whole w WHERE w.job = $1
