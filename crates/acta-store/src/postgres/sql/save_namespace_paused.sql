UPDATE acta.namespaces SET paused = $2 WHERE ns = $1
