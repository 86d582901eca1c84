SELECT j.ns FROM acta_jobs j WHERE j.is_foreign = 1 AND j.id = ?1
