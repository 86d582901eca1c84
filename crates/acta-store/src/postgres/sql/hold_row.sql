SELECT acta._begin(true),
       (SELECT s.job
        FROM acta.standing s
        WHERE s.job = coalesce((SELECT j.job FROM acta.jobs j WHERE j.job = $1 AND j.id = $2),
                               (SELECT j.job FROM acta.jobs j WHERE j.is_foreign AND j.id = $2))
        FOR UPDATE)
