-- A job that is new: what is not named here has its default.
INSERT OR FAIL INTO acta_standing (state, place, priority, flags, max_attempts, run_at, expires_at, retention_ms, ready_place,
                           due_at, expires_by, aside, head_of, blocked_in, job, ns, name)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
