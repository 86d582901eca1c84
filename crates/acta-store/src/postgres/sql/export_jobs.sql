-- All of a namespace, for a copy: looking at everything is what is wanted here.
SELECT w.* FROM acta.whole w WHERE w.ns = $1 ORDER BY w.job
