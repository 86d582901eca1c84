DELETE FROM acta_jobs WHERE job = ?1
