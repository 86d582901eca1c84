-- Brings in what has become due, at most 1,000 jobs by instant, then place; the rows that changed. Never waits: what
-- somebody else holds is theirs to bring in, or comes with the next claim. `since` is an instant before which nothing is due.
CREATE OR REPLACE FUNCTION acta._recover(space acta.namespaces, since bigint, now_ms bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    found_ones bigint[];
    changed bigint[] := '{}';
    s acta.standing;
    signal_name text;
    still_has boolean;
BEGIN
    found_ones := ARRAY(
        SELECT d.job FROM acta.standing d
        WHERE d.ns = space.ns AND d.due_at >= since AND d.due_at <= now_ms
          -- A lapsed lease is reclaimed under no pause; a requested cancel is carried out all the same.
          AND (d.state NOT IN (3, 4) OR d.flags & 4 <> 0 OR NOT (space.paused OR d.flags & 2 <> 0))
        ORDER BY d.due_at, d.place
        LIMIT 1000
        FOR UPDATE SKIP LOCKED);
    IF found_ones = '{}' THEN
        RETURN found_ones;
    END IF;
    FOR i IN 1 .. array_length(found_ones, 1) LOOP
        -- Read again: what an earlier one ended may have promoted this one.
        SELECT * INTO s FROM acta.standing d WHERE d.job = found_ones[i];
        IF s.fence = 0 AND s.state < 6 AND s.expires_at <= now_ms THEN
            CONTINUE WHEN NOT acta._may_end(s);
            PERFORM acta._note(s.ns, s.job, now_ms, 'expired');
            PERFORM acta._end(s, 7, false, '{"kind":"system","message":"not claimed before it expired","code":"expired"}',
                              now_ms);
        ELSIF s.state IN (3, 4) AND s.lease_expires_at <= now_ms THEN
            IF s.flags & 4 <> 0 THEN
                CONTINUE WHEN NOT acta._may_end(s);
                PERFORM acta._note(s.ns, s.job, now_ms, 'lease-lost', s.fence, s.claimed_by);
                PERFORM acta._note(s.ns, s.job, now_ms, 'cancelled');
                PERFORM acta._end(s, 8, true,
                    '{"kind":"system","message":"cancelled; its holder''s lease lapsed","code":"cancelled"}', now_ms);
            ELSIF space.paused OR s.flags & 2 <> 0 THEN
                CONTINUE;
            ELSIF s.lost_leases >= 5 THEN
                CONTINUE WHEN NOT acta._may_end(s);
                PERFORM acta._note(s.ns, s.job, now_ms, 'lease-lost', s.fence, s.claimed_by);
                PERFORM acta._end(s, 7, true, '{"kind":"system","message":"lease lost 6 times","code":"lease-lost"}', now_ms);
            ELSE
                PERFORM acta._note(s.ns, s.job, now_ms, 'lease-lost', s.fence, s.claimed_by);
                UPDATE acta.standing d SET state = 1, lease_expires_at = NULL, due_at = NULL, lost_leases = d.lost_leases + 1
                WHERE d.job = s.job;
                PERFORM acta._count(s.ns, now_ms, s.state, -1, 1, 1);
            END IF;
        ELSIF s.state = 5 AND s.wait_until <= now_ms THEN
            PERFORM acta._note(s.ns, s.job, now_ms, 'wait-timed-out');
            UPDATE acta.details d SET wait = NULL FROM acta.details o
            WHERE d.job = s.job AND o.job = s.job RETURNING o.wait INTO signal_name;
            IF signal_name IS NOT NULL THEN
                PERFORM acta._keep_wait(s.job, signal_name, NULL);
            END IF;
            still_has := acta._tidy_details(s.job);
            UPDATE acta.standing d
            SET state = 1, wait_until = NULL, due_at = NULL, flags = d.flags & ~(32 | 256) | CASE WHEN still_has THEN 32 ELSE 0 END
            WHERE d.job = s.job;
            PERFORM acta._count(s.ns, now_ms, 5, -1, 1, 1);
        ELSIF s.state = 2 AND s.run_at <= now_ms THEN
            UPDATE acta.standing d
            SET state = 1, flags = d.flags & ~256, due_at = CASE WHEN d.fence = 0 THEN d.expires_at END
            WHERE d.job = s.job;
            PERFORM acta._count(s.ns, now_ms, 2, -1, 1, 1);
        ELSE
            CONTINUE;
        END IF;
        changed := changed || s.job;
    END LOOP;
    RETURN changed;
END $$;

-- Takes away the details of a job that has none any more; whether it still has some.
CREATE OR REPLACE FUNCTION acta._tidy_details(of_job bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM acta.details d
    WHERE d.job = of_job AND num_nonnulls(d.wait, d.progress, d.started_at, d.output, d.exception) = 0;
    RETURN EXISTS (SELECT 1 FROM acta.details d WHERE d.job = of_job);
END $$;

-- The first of the candidates that became so after their enqueue, by priority and place, taken hold of without waiting: where
-- their rows are.
CREATE OR REPLACE FUNCTION acta._late(of_ns integer, most integer, numbers integer[], now_ms bigint) RETURNS tid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT s.ctid FROM acta.standing s
        WHERE s.ns = of_ns AND s.state = 1 AND s.flags & 259 = 0 AND (numbers IS NULL OR s.name = ANY (numbers))
          AND (s.expires_at IS NULL OR s.fence > 0 OR s.expires_at > now_ms)
        ORDER BY s.priority DESC, s.place
        LIMIT most
        FOR UPDATE SKIP LOCKED);
END $$;

-- The first of both kinds of candidates.
CREATE OR REPLACE FUNCTION acta._foremost(late tid[], fresh tid[], most integer) RETURNS tid[]
LANGUAGE plpgsql AS $$
BEGIN
    IF late = '{}' OR fresh = '{}' THEN
        RETURN late || fresh;
    END IF;
    RETURN ARRAY(SELECT s.ctid FROM acta.standing s WHERE s.ctid = ANY (late || fresh)
                 ORDER BY s.priority DESC, s.place LIMIT most);
END $$;

-- The numbers of definitions; those that the ledger has never heard of can have no job.
CREATE OR REPLACE FUNCTION acta._numbers(names text[]) RETURNS integer[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    fault record;
    numbers integer[];
BEGIN
    IF names IS NULL THEN
        RETURN NULL;
    END IF;
    numbers := ARRAY(SELECT n.number FROM acta.names n WHERE n.name = ANY (names));
    IF cardinality(numbers) < cardinality(names) THEN
        SELECT i.name AS given, n.name AS existing INTO fault
        FROM unnest(names) WITH ORDINALITY i (name, nth)
        JOIN acta.names n ON lower(n.name) = lower(i.name) AND n.name <> i.name
        ORDER BY i.nth LIMIT 1;
        IF FOUND THEN
            PERFORM acta._refuse('case', format('name %I differs from the existing %I only by case', fault.given,
                                                fault.existing), 'name', fault.given, fault.existing);
        END IF;
    END IF;
    RETURN numbers;
END $$;

-- Brings in what is due, as a claim would; the rows that changed, in that order. `admits` as in `_exchange`.
CREATE OR REPLACE FUNCTION acta._bring_in(queue text, admits boolean, now_ms bigint) RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
DECLARE
    space acta.namespaces;
BEGIN
    PERFORM acta._begin(true);
    space := acta._namespace(queue);
    IF space.ns IS NULL THEN
        PERFORM acta._refuse('missing', format('there is no queue %s', queue), 'queue', queue);
    END IF;
    IF admits THEN
        PERFORM acta._admit(space.ns, now_ms);
    END IF;
    RETURN acta._recover(space, 0, acta._now(now_ms));
END $$;

-- The id of the first candidate, if a claim of one job by these names would take one now.
CREATE OR REPLACE FUNCTION acta._first(queue text, names text[], now_ms bigint) RETURNS text
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
DECLARE
    space acta.namespaces := acta._namespace(queue);
    numbers integer[] := acta._numbers(names);
    late tid[];
    fresh tid[];
BEGIN
    IF space.paused THEN
        RETURN NULL;
    END IF;
    now_ms := acta._now(now_ms);
    late := acta._late(space.ns, 1, numbers, now_ms);
    fresh := ARRAY(
        SELECT s.ctid FROM acta.standing s
        WHERE s.ns = space.ns AND s.state = 1 AND s.flags & 259 = 256 AND (numbers IS NULL OR s.name = ANY (numbers))
          AND (s.expires_at IS NULL OR s.expires_at > now_ms)
        ORDER BY s.priority DESC, s.place
        LIMIT 1
        FOR UPDATE SKIP LOCKED);
    RETURN (SELECT j.id FROM acta.standing s JOIN acta.jobs j ON j.job = s.job
            WHERE s.ctid = ANY (acta._foremost(late, fresh, 1)));
END $$;
