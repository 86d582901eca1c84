INSERT INTO acta_standing (state, place, priority, flags, attempts, max_attempts, fence, lost_leases, run_at, expires_at,
                           wait_until, lease_expires_at, claimed_by, claimed_at, finished_at, retention_ms, prune_at,
                           settled, settled_run_at, ready_place, due_at, aside, head_of, blocked_in, unsuccessful,
                           job, ns, name)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
        ?25, ?26, ?27, ?28)
