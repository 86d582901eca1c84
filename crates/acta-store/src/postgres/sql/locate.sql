SELECT j.ns, j.job FROM acta.jobs j WHERE j.job = $1 AND j.id = $2
