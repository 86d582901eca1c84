-- Settles a wave and claims, in one transaction; either may be left out. The first row holds the answers to the wave, as `_settle`
-- gives them, side by side, where there is a wave and not all of it are plain successes that were done; the other rows are jobs.
--
-- `places` and `lanes` are what `_settle_wave` takes; `at` is such a place, of a job that it will do for.
--
-- `is_first` says that the transaction holds no row yet, so that waiting for the lanes of arrivals holds up nobody. A queue that
-- is not there has no job to claim; a wave of it is refused.
CREATE OR REPLACE FUNCTION acta._exchange(
    queue text, rows bigint[], ids text[], fences bigint[], robots text[], outcomes smallint[], marks bigint[],
    told text[], instants bigint[], words bigint[], places tid[], lanes bigint[], robot text, most integer, lease bigint, names text[], is_first boolean,
    now_ms bigint
) RETURNS TABLE (
    faults text[], states smallint[], run_ats bigint[], fences_now bigint[], holders text[], drew boolean[],
    job bigint, place bigint, priority smallint, lane_number bigint, flags smallint, attempts integer, max_attempts integer,
    fence bigint, lost_leases integer, run_at bigint, expires_at bigint, lease_expires_at bigint, claimed_at bigint,
    retention_ms bigint, id text, name text, lane text, key text, dedup_key text, payload text, created_at bigint,
    backoff text, lease_ms bigint, traceparent text, detail text,
    at tid
)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    has_begun boolean;
    look record;
    space acta.namespaces;
    late tid[] := '{}';
    fresh tid[] := '{}';
    picked tid[];
    taken integer;
    queue_lease bigint;
    last_instant constant bigint := 253402128000000;
    look_at bigint;
BEGIN
    has_begun := acta._begin(true);
    look_at := acta._now(now_ms);
    -- All that a claim has to know, in one look: statements cost more than what they do here.
    SELECT n AS space, k.numbers, d.numbers AS lease_of, d.leases AS lease_is, l.priorities, l.floors,
           EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = n.ns AND s.arriving IS NOT NULL) AS has_arrivals,
           EXISTS (SELECT 1 FROM acta.standing s
                   WHERE s.ns = n.ns AND s.due_at >= n.due_from AND s.due_at <= look_at) AS has_due,
           EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = n.ns AND s.state = 1 AND s.flags & 259 = 0) AS has_late
    INTO look
    FROM acta.namespaces n,
         LATERAL (SELECT array_agg(o.number) AS numbers FROM acta.names o WHERE o.name = ANY (names)) k,
         LATERAL (SELECT array_agg(o.number) AS numbers, array_agg(o.lease_ms) AS leases
                  FROM acta.names o WHERE lease IS NULL AND o.lease_ms IS NOT NULL) d,
         LATERAL (SELECT array_agg(o.priority ORDER BY o.priority DESC) AS priorities,
                         array_agg(o.floor ORDER BY o.priority DESC) AS floors
                  FROM acta.lines o WHERE o.ns = n.ns) l
    WHERE n.path = queue;
    space := look.space;
    IF space.path IS DISTINCT FROM queue THEN
        -- Not there, or written otherwise.
        space := acta._namespace(queue);
        IF ids IS NOT NULL THEN
            PERFORM acta._refuse('missing', format('there is no queue %s', queue), 'queue', queue);
        END IF;
        RETURN;
    END IF;
    IF cardinality(look.numbers) IS DISTINCT FROM cardinality(names) THEN
        look.numbers := acta._numbers(names);
    END IF;
    IF array_length(ids, 1) > 0 THEN
        SELECT w.faults, w.states, w.run_ats, w.fences_now, w.holders, w.drew, look.has_late OR w.has_more
        INTO faults, states, run_ats, fences_now, holders, drew, look.has_late
        FROM acta._settle_wave(space, rows, ids, fences, robots, outcomes, marks, told, instants, words, places, lanes,
                               now_ms, is_first AND look.has_arrivals) w;
        IF states IS NOT NULL THEN
            RETURN NEXT;
        END IF;
    ELSIF is_first AND look.has_arrivals THEN
        PERFORM acta._admit(space.ns, now_ms);
        look.has_late := true;
    END IF;
    now_ms := acta._now(now_ms);
    IF look.has_due THEN
        PERFORM acta._recover(space, space.due_from, now_ms);
        look.has_late := true;
    END IF;
    IF space.paused THEN
        RETURN;
    END IF;
    -- The first candidates, by priority and place, taken hold of without waiting.
    IF look.has_late THEN
        late := acta._late(space.ns, most, look.numbers, now_ms);
    END IF;
    FOR i IN 1 .. coalesce(cardinality(look.priorities), 0) LOOP
        fresh := fresh || ARRAY(
            SELECT s.ctid FROM acta.standing s
            WHERE s.ns = space.ns AND s.priority = look.priorities[i] AND s.state = 1 AND s.flags & 259 = 256
              AND s.place >= look.floors[i] AND (look.numbers IS NULL OR s.name = ANY (look.numbers))
              AND (s.expires_at IS NULL OR s.expires_at > now_ms)
            ORDER BY s.place
            LIMIT most - cardinality(fresh)
            FOR UPDATE SKIP LOCKED);
        EXIT WHEN cardinality(fresh) >= most;
    END LOOP;
    picked := acta._foremost(late, fresh, most);
    IF picked = '{}' THEN
        RETURN;
    END IF;
    queue_lease := coalesce(space.lease_ms, acta._lease_of(space.path));
    -- As the rows come: whoever asked sorts them.
    RETURN QUERY
    UPDATE acta.standing s
    SET state = 3, attempts = s.attempts + 1, fence = s.fence + 1, settled = NULL, settled_run_at = NULL,
        claimed_by = robot, claimed_at = now_ms, flags = s.flags & ~256,
        lease_expires_at = least(last_instant, now_ms + coalesce(lease, j.lease_ms,
                                 look.lease_is[array_position(look.lease_of, s.name)], queue_lease)),
        due_at = least(last_instant, now_ms + coalesce(lease, j.lease_ms,
                       look.lease_is[array_position(look.lease_of, s.name)], queue_lease))
    FROM acta.jobs j
    WHERE s.ctid = ANY (picked) AND j.job = s.job
    RETURNING NULL::text[], NULL::smallint[], NULL::bigint[], NULL::bigint[], NULL::text[], NULL::boolean[],
              s.job, s.place, s.priority, s.lane, s.flags, s.attempts, s.max_attempts, s.fence, s.lost_leases, s.run_at,
              s.expires_at, s.lease_expires_at, s.claimed_at, s.retention_ms, j.id, j.name, j.lane, j.key, j.dedup_key,
              j.payload, j.created_at, j.backoff, j.lease_ms,
              j.traceparent,
              CASE WHEN s.flags & 32 <> 0 THEN (
                  SELECT json_build_array(d.wait, d.progress, d.started_at, d.output, d.exception)::text
                  FROM acta.details d WHERE d.job = s.job) END,
              CASE WHEN s.flags & (32 | 128) = 0 THEN s.ctid END;
    GET DIAGNOSTICS taken = ROW_COUNT;
    INSERT INTO acta.changes (ns, at, amounts) VALUES (space.ns, now_ms, ARRAY[0, -taken, 0, taken]);
END $$;
