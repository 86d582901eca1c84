SELECT j.id, j.ns FROM acta_jobs j WHERE j.job = ?1
