-- Settles a wave and claims, in one transaction; either may be left out. The first row holds the answers to the wave, as `_settle`
-- gives them, side by side, where there is a wave and not all of it are plain successes that were done; the other rows are jobs.
--
-- `is_first` says that the transaction holds no row yet, so that waiting for the lanes of arrivals holds up nobody. A queue that
-- is not there has no job to claim; a wave of it is refused.
CREATE OR REPLACE FUNCTION acta._exchange(
    queue text, rows bigint[], ids text[], fences bigint[], robots text[], outcomes smallint[], marks bigint[],
    told text[], instants bigint[], words bigint[], robot text, most integer, lease bigint, names text[], is_first boolean,
    now_ms bigint
) RETURNS TABLE (
    faults text[], states smallint[], run_ats bigint[], fences_now bigint[], holders text[], drew boolean[],
    job bigint, state smallint, place bigint, priority smallint, lane_number bigint, flags smallint, attempts integer,
    max_attempts integer, fence bigint, lost_leases integer, run_at bigint, expires_at bigint, wait_until bigint,
    lease_expires_at bigint, claimed_by text, claimed_at bigint, finished_at bigint, retention_ms bigint, prune_at bigint,
    settled bigint, settled_run_at bigint, id text, name text, lane text, key text, dedup_key text, payload text,
    created_at bigint, backoff text, lease_ms bigint, wait text, progress text, started_at bigint, output text,
    exception text, ns integer
)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space acta.namespaces;
    numbers integer[];
    picked tid[];
    own_lease bigint;
    lease_of integer[];
    lease_is bigint[];
    taken integer;
BEGIN
    PERFORM acta._begin(true);
    space := acta._namespace(queue);
    IF space.ns IS NULL THEN
        IF ids IS NOT NULL THEN
            PERFORM acta._refuse('missing', format('there is no queue %s', queue), 'queue', queue);
        END IF;
        RETURN;
    END IF;
    numbers := acta._numbers(names);
    IF array_length(ids, 1) > 0 THEN
        SELECT w.faults, w.states, w.run_ats, w.fences_now, w.holders, w.drew
        INTO faults, states, run_ats, fences_now, holders, drew
        FROM acta._settle_wave(space, rows, ids, fences, robots, outcomes, marks, told, instants, words, now_ms, is_first) w;
        IF states IS NOT NULL THEN
            RETURN NEXT;
        END IF;
    ELSIF is_first THEN
        PERFORM acta._admit(space.ns, now_ms);
    END IF;
    now_ms := acta._now(now_ms);
    PERFORM acta._recover(space, space.due_from, now_ms);
    IF space.paused THEN
        RETURN;
    END IF;
    picked := acta._candidates(space, most, numbers, now_ms);
    IF picked = '{}' THEN
        RETURN;
    END IF;
    own_lease := coalesce(space.lease_ms, (acta._family(space.path)).lease_ms);
    IF lease IS NULL THEN
        SELECT array_agg(n.number), array_agg(n.lease_ms) INTO lease_of, lease_is
        FROM acta.names n WHERE n.lease_ms IS NOT NULL;
    END IF;
    RETURN QUERY
    WITH taken AS (
        UPDATE acta.standing s
        SET state = 3, attempts = s.attempts + 1, fence = s.fence + 1, settled = NULL, settled_run_at = NULL,
            claimed_by = robot, claimed_at = now_ms, flags = s.flags & ~256,
            lease_expires_at = least(253402128000000, now_ms + coalesce(lease, j.lease_ms,
                                     lease_is[array_position(lease_of, s.name)], own_lease))
        FROM acta.jobs j
        WHERE s.ctid = ANY (picked) AND j.job = s.job
        RETURNING s.job, s.state, s.place, s.priority, s.lane AS lane_number, s.flags, s.attempts, s.max_attempts, s.fence,
                  s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
                  s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at,
                  j.id, j.name, j.lane, j.key, j.dedup_key, j.payload, j.created_at, j.backoff, j.lease_ms, s.ns
    )
    SELECT NULL::text[], NULL::smallint[], NULL::bigint[], NULL::bigint[], NULL::text[], NULL::boolean[],
           t.job, t.state, t.place, t.priority, t.lane_number, t.flags, t.attempts, t.max_attempts, t.fence,
           t.lost_leases, t.run_at, t.expires_at, t.wait_until, t.lease_expires_at, t.claimed_by, t.claimed_at,
           t.finished_at, t.retention_ms, t.prune_at, t.settled, t.settled_run_at,
           t.id, t.name, t.lane, t.key, t.dedup_key, t.payload, t.created_at, t.backoff, t.lease_ms,
           d.wait, d.progress, d.started_at, d.output, d.exception, t.ns
    FROM taken t
    -- Hardly any has details: the condition is asked before the index.
    LEFT JOIN LATERAL (SELECT * FROM acta.details o WHERE o.job = t.job AND t.flags & 32 <> 0) d ON t.flags & 32 <> 0
    ORDER BY t.priority DESC, t.place;
    GET DIAGNOSTICS taken = ROW_COUNT;
    PERFORM acta._count(space.ns, now_ms, 1, -taken, 3, taken);
END $$;

-- Takes up to `most` jobs of a queue; none where there is no such queue.
CREATE OR REPLACE FUNCTION acta._claim(queue text, robot text, most integer, lease bigint, names text[], is_first boolean,
                                       now_ms bigint)
RETURNS SETOF acta.whole
LANGUAGE sql AS $$
    SELECT e.job, e.state, e.place, e.priority, e.lane_number, e.flags, e.attempts, e.max_attempts, e.fence,
           e.lost_leases, e.run_at, e.expires_at, e.wait_until, e.lease_expires_at, e.claimed_by, e.claimed_at,
           e.finished_at, e.retention_ms, e.prune_at, e.settled, e.settled_run_at,
           e.id, e.name, e.lane, e.key, e.dedup_key, e.payload, e.created_at, e.backoff, e.lease_ms,
           e.wait, e.progress, e.started_at, e.output, e.exception, e.ns
    FROM acta._exchange(queue, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, robot, most, lease, names, is_first,
                        now_ms) e
$$;
