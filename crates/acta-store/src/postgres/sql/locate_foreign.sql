SELECT j.ns, j.job FROM acta.jobs j WHERE j.is_foreign AND j.id = $1
