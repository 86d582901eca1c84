-- How one claim ended. Only what the fast path of a wave leaves over comes here.
--
-- Outcomes: 0 succeeded, 1 failed (system), 2 failed (business), 3 wait, 4 snooze, 5 release, 6 cancelled. `told` is the
-- output, the exception or the name of the signal; `at_ms` is the delay that was asked for, or the instant. `word` is a
-- random number. The caller holds the job's lane and key.
--
-- `fault` is null where it was done: missing, never (claimed), lost (the lease), other (it was settled with another
-- outcome), nothing (no claimant).
CREATE OR REPLACE FUNCTION acta._settle_one(
    space acta.namespaces, at_row bigint, public_id text, given_fence bigint, robot text, outcome integer, mark bigint,
    told text, at_ms bigint, word bigint, now_ms bigint,
    OUT fault text, OUT state smallint, OUT run_at bigint, OUT fence bigint, OUT holder text, OUT drew boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    s acta.standing;
    job_of bigint;
    to_state integer;
    new_run_at bigint;
    new_wait bigint;
    delay bigint;
    tenth bigint;
    initial bigint;
    ceiling bigint;
    gives_back boolean := false;
    happening text;
    exception text;
    came text;
    has_detail boolean;
    sets_run_at boolean := false;
    limit_ms constant bigint := 253402128000000;
BEGIN
    drew := false;
    SELECT j.job INTO job_of FROM acta.jobs j WHERE j.job = at_row AND j.id = public_id AND j.ns = space.ns;
    IF job_of IS NULL THEN
        SELECT j.job INTO job_of FROM acta.jobs j WHERE j.is_foreign AND j.id = public_id AND j.ns = space.ns;
    END IF;
    SELECT t.* INTO s FROM acta.standing t WHERE t.job = job_of FOR UPDATE;
    IF NOT FOUND THEN
        fault := 'missing';
        RETURN;
    END IF;
    state := s.state;
    fence := s.fence;
    holder := s.claimed_by;
    IF given_fence IS NULL AND robot IS NULL THEN
        fault := 'nothing';
    ELSIF s.fence = 0 THEN
        fault := 'never';
    ELSIF given_fence <> s.fence OR robot <> s.claimed_by THEN
        fault := 'lost';
    ELSIF s.state NOT IN (3, 4) THEN
        fault := CASE WHEN s.settled IS NULL THEN 'lost' WHEN s.settled >> 4 <> mark THEN 'other' END;
        IF fault IS NULL THEN
            state := s.settled & 15;
            run_at := s.settled_run_at;
        END IF;
    END IF;
    IF fault IS NOT NULL OR s.state NOT IN (3, 4) THEN
        RETURN;
    END IF;

    -- Which event it is. A success under a valid fence wins over a requested cancel; nothing else does.
    IF outcome = 0 THEN
        to_state := 6;
    ELSIF outcome = 6 OR s.flags & 4 <> 0 THEN
        to_state := 8;
        happening := 'cancelled';
        exception := CASE WHEN outcome IN (1, 2) THEN told
            ELSE '{"kind":"system","message":"cancelled; its holder stopped","code":"cancelled"}' END;
    ELSIF outcome IN (1, 2) THEN
        exception := told;
        IF (outcome = 2 AND (acta._family(space.path)).business_is_final) OR s.flags & 8 <> 0
           OR s.attempts >= s.max_attempts THEN
            to_state := 7;
            happening := 'failed';
        ELSE
            happening := 'retried';
            sets_run_at := true;
            IF at_ms IS NOT NULL THEN
                -- Never earlier than asked for, at most a tenth later.
                tenth := at_ms / 10;
                delay := at_ms + abs(acta._jitter(tenth, word));
                drew := true;
            ELSE
                SELECT b.initial, b.most INTO initial, ceiling FROM acta.jobs j, acta._backoff(j.backoff) b WHERE j.job = s.job;
                IF initial IS NULL THEN
                    delay := 0;
                ELSE
                    delay := least(greatest(initial, 1)::numeric * 2::numeric ^ least(greatest(s.attempts - 1, 0), 62),
                                   greatest(ceiling, 1))::bigint;
                    delay := greatest(delay + acta._jitter(delay / 10, word), 1);
                    drew := true;
                END IF;
            END IF;
            new_run_at := CASE WHEN delay > 0 THEN least(now_ms + delay, limit_ms) END;
            to_state := CASE WHEN delay > 0 THEN 2 ELSE 1 END;
        END IF;
    ELSIF outcome = 3 AND told IS NOT NULL THEN
        gives_back := true;
        DELETE FROM acta.signals g
        WHERE g.signal = (SELECT min(f.signal) FROM acta.signals f WHERE f.job = s.job AND f.name = told)
        RETURNING g.payload INTO came;
        IF FOUND THEN
            PERFORM acta._keep_wait(s.job, told, came);
            to_state := 1;
        ELSE
            to_state := 5;
            new_wait := at_ms;
            happening := 'waited';
        END IF;
    ELSIF outcome IN (3, 4) THEN
        gives_back := true;
        happening := 'snoozed';
        sets_run_at := true;
        new_run_at := CASE WHEN at_ms > now_ms THEN at_ms END;
        to_state := CASE WHEN at_ms > now_ms THEN 2 ELSE 1 END;
    ELSE
        gives_back := true;
        happening := 'released';
        to_state := 1;
    END IF;

    -- What it leaves in the details and in the record.
    has_detail := s.flags & 32 <> 0;
    IF outcome = 0 AND (told IS NOT NULL OR has_detail) THEN
        INSERT INTO acta.details AS d (job, output) VALUES (s.job, told)
        ON CONFLICT (job) DO UPDATE SET output = excluded.output, exception = NULL;
        has_detail := acta._tidy_details(s.job);
    ELSIF exception IS NOT NULL THEN
        PERFORM acta._keep_exception(s.job, exception);
        has_detail := true;
    ELSIF to_state = 5 THEN
        INSERT INTO acta.details AS d (job, wait) VALUES (s.job, told)
        ON CONFLICT (job) DO UPDATE SET wait = excluded.wait;
        has_detail := true;
    END IF;
    IF happening IS NOT NULL THEN
        PERFORM acta._note(s.ns, s.job, now_ms, happening, s.fence, s.claimed_by, new_run_at, exception);
    END IF;

    state := to_state;
    run_at := CASE to_state WHEN 2 THEN new_run_at WHEN 5 THEN new_wait END;
    UPDATE acta.standing t
    SET state = to_state, lease_expires_at = NULL, lost_leases = 0,
        attempts = t.attempts - CASE WHEN gives_back AND t.attempts > 0 THEN 1 ELSE 0 END,
        run_at = CASE WHEN sets_run_at THEN new_run_at ELSE t.run_at END,
        wait_until = CASE WHEN to_state = 5 THEN new_wait ELSE t.wait_until END,
        due_at = _settle_one.run_at,
        settled = mark << 4 | to_state, settled_run_at = _settle_one.run_at,
        finished_at = CASE WHEN to_state >= 6 THEN now_ms END,
        prune_at = CASE WHEN to_state >= 6
            THEN least(now_ms + coalesce(t.retention_ms, space.retention_ms, 2592000000), limit_ms) END,
        lane = CASE WHEN to_state >= 6 THEN NULL ELSE t.lane END,
        flags = t.flags
            & CASE WHEN to_state >= 6 THEN ~(1 | 2 | 4) ELSE ~0 END
            & CASE WHEN outcome IN (0, 1, 2) AND happening IS DISTINCT FROM 'cancelled' THEN ~16 ELSE ~0 END
            & ~(32 | 256)
            | CASE WHEN outcome = 2 AND happening = 'failed' THEN 16 ELSE 0 END
            | CASE WHEN has_detail THEN 32 ELSE 0 END
    WHERE t.job = s.job;
    IF to_state = 7 AND outcome = 2 THEN
        PERFORM acta._count(s.ns, now_ms, s.state, -1, 23, 1);
    ELSE
        PERFORM acta._count(s.ns, now_ms, s.state, -1, to_state, 1);
    END IF;
    IF to_state >= 6 THEN
        IF s.flags & 128 <> 0 THEN
            PERFORM acta._free_keys(s.ns, ARRAY[s.job]);
        END IF;
        IF s.lane IS NOT NULL THEN
            PERFORM acta._leave_lanes(s.ns, ARRAY[s.lane], now_ms);
        END IF;
    END IF;
END $$;

-- Up to a tenth of a delay, either way: `tenth` milliseconds at the most. `word` is 64 random bits, without a sign.
CREATE OR REPLACE FUNCTION acta._jitter(tenth bigint, word bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN word IS NULL THEN floor(random() * (2 * tenth + 1))::bigint
        ELSE mod(word::numeric + CASE WHEN word < 0 THEN 18446744073709551616 ELSE 0 END, 2 * tenth + 1)::bigint END - tenth
$$;

-- A length of time as it is written: 90s, 10m, 2h, 7d, 250ms.
CREATE OR REPLACE FUNCTION acta._span(written text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT substring(written FROM '^[0-9]+')::bigint
        * CASE substring(written FROM '[a-z]+$') WHEN 'd' THEN 86400000 WHEN 'h' THEN 3600000 WHEN 'm' THEN 60000
          WHEN 's' THEN 1000 ELSE 1 END
$$;

-- The delays of a back-off: none, as written, or 1 s doubling to 5 min.
CREATE OR REPLACE FUNCTION acta._backoff(written text, OUT initial bigint, OUT most bigint)
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN written = '"none"' THEN NULL WHEN written IS NULL THEN 1000 ELSE acta._span(written::json ->> 'initial') END,
           CASE WHEN written = '"none"' THEN NULL WHEN written IS NULL THEN 300000 ELSE acta._span(written::json ->> 'max') END
$$;

-- Settles a wave: the answers side by side, in order, or all null where all were plain successes and were done; and whether there
-- may be a candidate more. The plain successes of a wave, which are nearly all, go through a handful of statements; what is special
-- goes through `_settle_one`.
--
-- `places` is null unless all are plain successes of jobs whose rows their claims had left at these places, without details and
-- keys to free, and in these lanes. A row that still stands there is as it was.
CREATE OR REPLACE FUNCTION acta._settle_wave(
    space acta.namespaces, rows bigint[], ids text[], fences bigint[], robots text[], outcomes smallint[], marks bigint[],
    told text[], instants bigint[], words bigint[], places tid[], lanes bigint[], now_ms bigint, admits boolean,
    OUT faults text[], OUT states smallint[], OUT run_ats bigint[], OUT fences_now bigint[], OUT holders text[],
    OUT drew boolean[], OUT has_more boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wave_size integer := coalesce(array_length(ids, 1), 0);
    is_plain boolean[];
    all_plain boolean;
    freed text[];
    wanted text[];
    arrived text[];
    done integer[];
    lanes_left bigint[];
    drawn integer := 0;
    first integer := 1;
    last integer;
    item record;
    one record;
BEGIN
    -- Whether a lane may have gone on, or a job come back.
    has_more := false;
    IF admits THEN
        arrived := acta._arrivals(space.ns);
    END IF;
    -- Lanes have to be held before any row is.
    IF places IS NOT NULL AND arrived IS NULL THEN
        IF lanes IS NOT NULL THEN
            lanes_left := ARRAY(SELECT l.lane FROM acta.lanes l WHERE l.lane = ANY (lanes) ORDER BY l.name FOR UPDATE);
        END IF;
        now_ms := acta._now(now_ms);
        UPDATE acta.standing s
        SET state = 6, lease_expires_at = NULL, due_at = NULL, lost_leases = 0, finished_at = now_ms, lane = NULL,
            prune_at = least(now_ms + coalesce(s.retention_ms, space.retention_ms, 2592000000), 253402128000000),
            settled = 6, flags = s.flags & ~(1 | 2 | 4 | 16 | 256)
        FROM (SELECT unnest(places) AS place, unnest(rows) AS job, unnest(fences) AS fence ORDER BY 2) i
        WHERE s.ctid = i.place AND s.job = i.job AND s.fence = i.fence AND s.state = 3 AND s.ns = space.ns
          AND (s.lane IS NULL OR s.lane = ANY (lanes_left)) AND s.flags & (32 | 128) = 0;
        GET DIAGNOSTICS last = ROW_COUNT;
        IF last > 0 THEN
            INSERT INTO acta.changes (ns, at, amounts) VALUES (space.ns, now_ms, ARRAY[0, 0, 0, -last, 0, 0, last]);
        END IF;
        IF lanes_left IS NOT NULL THEN
            has_more := acta._advance(space.ns, lanes_left, last = wave_size, now_ms);
        END IF;
        IF last = wave_size THEN
            RETURN;
        END IF;
        lanes_left := NULL;
    END IF;
    has_more := true;
    -- Which of them are plain: the first settle of a job in this wave, a success without output, of a job that is held
    -- under this very fence and has no details, no key to be freed.
    SELECT array_agg(w.plain ORDER BY w.nth), bool_and(w.plain),
           array_agg(w.dedup_key) FILTER (WHERE w.flags & 128 <> 0), array_agg(w.lane_name) FILTER (WHERE w.lane_name IS NOT NULL)
    INTO is_plain, all_plain, freed, wanted
    FROM (
        SELECT i.nth, s.flags, j.dedup_key, l.name AS lane_name,
               coalesce(i.outcome = 0 AND i.told IS NULL AND i.robot IS NULL AND s.state = 3 AND s.fence = i.fence
                        AND s.flags & (32 | 128) = 0 AND count(*) OVER (PARTITION BY i.id) = 1, false) AS plain
        FROM unnest(rows, ids, fences, robots, outcomes, told) WITH ORDINALITY i (job, id, fence, robot, outcome, told, nth)
        LEFT JOIN acta.jobs j ON j.job = i.job AND j.id = i.id
        LEFT JOIN acta.standing s ON s.job = j.job AND s.ns = space.ns
        LEFT JOIN acta.lanes l ON l.lane = s.lane
    ) w;
    -- Foreign ids are few, and their lanes and keys are held like the others'.
    IF NOT all_plain THEN
        SELECT freed || array_agg(j.dedup_key) FILTER (WHERE s.flags & 128 <> 0),
               wanted || array_agg(l.name) FILTER (WHERE l.name IS NOT NULL)
        INTO freed, wanted
        FROM unnest(ids) i (id)
        JOIN acta.jobs j ON j.is_foreign AND j.id = i.id AND j.ns = space.ns
        JOIN acta.standing s ON s.job = j.job
        LEFT JOIN acta.lanes l ON l.lane = s.lane;
    END IF;
    -- Keys, then lanes, then rows, each in its order: whoever does the same waits, but never in a circle.
    IF freed IS NOT NULL THEN
        PERFORM 1 FROM acta.keys k WHERE k.ns = space.ns AND k.key = ANY (freed) ORDER BY k.key FOR UPDATE;
    END IF;
    IF arrived IS NOT NULL THEN
        PERFORM acta._hold_lanes(space.ns, arrived || wanted);
        PERFORM acta._admit_into(space.ns, arrived, acta._now(now_ms));
    ELSIF wanted IS NOT NULL THEN
        PERFORM 1 FROM acta.lanes l WHERE l.ns = space.ns AND l.name = ANY (wanted) ORDER BY l.name FOR UPDATE;
    END IF;
    now_ms := acta._now(now_ms);

    WHILE first <= wave_size LOOP
        last := first;
        done := NULL;
        IF is_plain[first] THEN
            WHILE last < wave_size AND is_plain[last + 1] LOOP
                last := last + 1;
            END LOOP;
            WITH ended AS (
                UPDATE acta.standing s
                SET state = 6, lease_expires_at = NULL, due_at = NULL, lost_leases = 0, finished_at = now_ms, lane = NULL,
                    prune_at = least(now_ms + coalesce(s.retention_ms, space.retention_ms, 2592000000), 253402128000000),
                    settled = 6, flags = s.flags & ~(1 | 2 | 4 | 16 | 256)
                FROM (SELECT i.nth, i.job, i.fence, o.lane
                      FROM unnest(rows[first:last], fences[first:last]) WITH ORDINALITY i (job, fence, nth)
                      JOIN acta.standing o ON o.job = i.job
                      ORDER BY i.job) p
                -- The row may have changed while this waited for it; what has is judged below, on its own.
                WHERE s.job = p.job AND s.fence = p.fence AND s.state = 3
                RETURNING p.nth, p.lane
            )
            SELECT array_agg(e.nth), array_agg(e.lane) FILTER (WHERE e.lane IS NOT NULL) INTO done, lanes_left FROM ended e;
            IF done IS NOT NULL THEN
                PERFORM acta._count(space.ns, now_ms, 3, -array_length(done, 1), 6, array_length(done, 1));
            END IF;
            IF lanes_left IS NOT NULL THEN
                PERFORM acta._leave_lanes(space.ns, lanes_left, now_ms);
            END IF;
            IF array_length(done, 1) = wave_size THEN
                RETURN;
            END IF;
        END IF;
        FOR item IN
            SELECT i.* FROM unnest(rows[first:last], ids[first:last], fences[first:last], robots[first:last],
                                   outcomes[first:last], marks[first:last], told[first:last], instants[first:last])
                            WITH ORDINALITY i (job, id, fence, robot, outcome, mark, told, instant, nth)
            ORDER BY i.nth
        LOOP
            IF item.nth = ANY (done) THEN
                faults := array_append(faults, NULL);
                states := array_append(states, 6::smallint);
                run_ats := array_append(run_ats, NULL);
                fences_now := array_append(fences_now, NULL);
                holders := array_append(holders, NULL);
                drew := array_append(drew, false);
                CONTINUE;
            END IF;
            SELECT * INTO one FROM acta._settle_one(space, item.job, item.id, item.fence, item.robot, item.outcome::integer,
                                                    item.mark, item.told, item.instant, words[drawn + 1], now_ms);
            drawn := drawn + CASE WHEN one.drew THEN 1 ELSE 0 END;
            faults := array_append(faults, one.fault);
            states := array_append(states, one.state);
            run_ats := array_append(run_ats, one.run_at);
            fences_now := array_append(fences_now, one.fence);
            holders := array_append(holders, one.holder);
            drew := array_append(drew, one.drew);
        END LOOP;
        first := last + 1;
    END LOOP;
END $$;

-- Settles a wave; one answer each, in order. The arrays stand side by side.
CREATE OR REPLACE FUNCTION acta._settle(
    queue text, rows bigint[], ids text[], fences bigint[], robots text[], outcomes smallint[], marks bigint[],
    told text[], instants bigint[], words bigint[], places tid[], lanes bigint[], now_ms bigint, admits boolean
) RETURNS TABLE (fault text, state smallint, run_at bigint, fence bigint, holder text, drew boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space namespaces;
    answers record;
BEGIN
    PERFORM _begin(true);
    space := _namespace(queue);
    IF space.ns IS NULL THEN
        PERFORM _refuse('missing', format('there is no queue %s', queue), 'queue', queue);
    END IF;
    SELECT * INTO answers FROM _settle_wave(space, rows, ids, fences, robots, outcomes, marks, told, instants, words, places, lanes,
                                            now_ms, admits);
    IF answers.states IS NULL THEN
        RETURN QUERY SELECT NULL::text, 6::smallint, NULL::bigint, NULL::bigint, NULL::text, false
                     FROM generate_series(1, coalesce(array_length(ids, 1), 0));
    ELSE
        RETURN QUERY SELECT * FROM unnest(answers.faults, answers.states, answers.run_ats, answers.fences_now,
                                          answers.holders, answers.drew);
    END IF;
END $$;

-- Extends leases; one answer each, in order. `busy` is a job whose row somebody is changing just now: ask again.
CREATE OR REPLACE FUNCTION acta._heartbeat(
    queue text, rows bigint[], ids text[], fences bigint[], robots text[], lease bigint, now_ms bigint
) RETURNS TABLE (fault text, state smallint, fence bigint, holder text, lease_expires_at bigint, cancel_requested boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space namespaces;
    held bigint[];
BEGIN
    PERFORM _begin(true);
    space := _namespace(queue);
    IF space.ns IS NULL THEN
        PERFORM _refuse('missing', format('there is no queue %s', queue), 'queue', queue);
    END IF;
    held := ARRAY(SELECT s.job FROM standing s WHERE s.job = ANY (rows) ORDER BY s.job FOR UPDATE SKIP LOCKED);
    IF EXISTS (SELECT 1 FROM jobs j WHERE j.is_foreign AND j.id = ANY (ids)) THEN
        held := held || ARRAY(SELECT s.job FROM standing s JOIN jobs j ON j.job = s.job
                              WHERE j.is_foreign AND j.id = ANY (ids) ORDER BY s.job FOR UPDATE OF s SKIP LOCKED);
    END IF;
    now_ms := _now(now_ms);
    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT i.nth, s.job, s.state, s.fence, s.claimed_by, s.flags, s.lease_expires_at,
               least(253402128000000, now_ms + coalesce(lease, j.lease_ms, n.lease_ms, space.lease_ms,
                                                        (_family(space.path)).lease_ms)) AS until,
               CASE WHEN s.job IS NULL THEN 'missing'
                    WHEN i.fence IS NULL AND i.robot IS NULL THEN 'nothing'
                    WHEN NOT s.job = ANY (held) THEN 'busy'
                    WHEN s.fence = 0 THEN 'never'
                    WHEN i.fence <> s.fence OR i.robot <> s.claimed_by OR s.state NOT IN (3, 4) THEN 'lost' END AS fault
        FROM unnest(rows, ids, fences, robots) WITH ORDINALITY i (job, id, fence, robot, nth)
        LEFT JOIN LATERAL (SELECT * FROM jobs o WHERE o.job = i.job AND o.id = i.id AND o.ns = space.ns
                           UNION ALL
                           SELECT * FROM jobs o WHERE o.is_foreign AND o.id = i.id AND o.ns = space.ns
                           LIMIT 1) j ON true
        LEFT JOIN standing s ON s.job = j.job
        LEFT JOIN names n ON n.name = j.name
    ), beaten AS (
        -- Never shortened by its own holder.
        UPDATE standing s SET lease_expires_at = b.until, due_at = b.until
        FROM (SELECT g.job, max(g.until) AS until FROM judged g WHERE g.fault IS NULL GROUP BY g.job) b
        WHERE s.job = b.job AND s.lease_expires_at < b.until
    )
    SELECT g.fault, g.state, g.fence, g.claimed_by, greatest(g.until, g.lease_expires_at), g.flags & 4 <> 0
    FROM judged g ORDER BY g.nth;
END $$;
