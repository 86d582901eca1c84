INSERT INTO acta_counts (ns, state, business, jobs)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (ns, state, business) DO UPDATE SET jobs = jobs + excluded.jobs
