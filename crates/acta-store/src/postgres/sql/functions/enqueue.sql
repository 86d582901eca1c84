-- Puts what has arrived in these lanes, whose rows the caller holds, at their ends.
--
-- An enqueue in somebody's own transaction may lock nothing, so its laned jobs stand beside their lanes until now.
CREATE OR REPLACE FUNCTION acta._admit_into(of_ns integer, names text[], now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    ready integer;
    scheduled integer;
BEGIN
    WITH arrived AS (
        SELECT s.job, s.run_at, l.lane, l.paused,
               l.live = 0 AND row_number() OVER (PARTITION BY s.arriving ORDER BY s.job) = 1 AS is_head
        FROM acta.standing s JOIN acta.lanes l ON l.ns = of_ns AND l.name = s.arriving
        WHERE s.ns = of_ns AND s.arriving = ANY (names)
        ORDER BY s.arriving, s.job
    ), placed AS (
        SELECT a.*, nextval('acta.numbers') AS place FROM arrived a
    ), counted AS (
        UPDATE acta.lanes l SET live = l.live + n.added
        FROM (SELECT p.lane, count(*) AS added FROM placed p GROUP BY p.lane) n
        WHERE l.lane = n.lane
    ), moved AS (
        UPDATE acta.standing s
        SET place = p.place, lane = p.lane, arriving = NULL,
            state = CASE WHEN NOT p.is_head THEN 0 WHEN p.run_at > now_ms THEN 2 ELSE 1 END,
            due_at = least(CASE WHEN p.is_head AND p.run_at > now_ms THEN p.run_at END, s.expires_at),
            flags = s.flags | CASE WHEN p.is_head AND p.paused THEN 2 ELSE 0 END
        FROM placed p
        WHERE s.job = p.job
        RETURNING s.state
    )
    SELECT count(*) FILTER (WHERE m.state = 1), count(*) FILTER (WHERE m.state = 2) INTO ready, scheduled FROM moved m;
    IF ready + scheduled > 0 THEN
        PERFORM acta._count(of_ns, now_ms, 0, -(ready + scheduled), 1, ready, 2, scheduled);
    END IF;
END $$;

-- Takes hold of these lanes, in the order of their names, and makes those that are not there. To be called before any job's
-- row is held: that is what keeps two calls from waiting for each other.
CREATE OR REPLACE FUNCTION acta._hold_lanes(of_ns integer, names text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO acta.lanes AS l (ns, name, live)
    SELECT DISTINCT of_ns, n, 0 FROM unnest(names) n ORDER BY n
    ON CONFLICT (ns, name) DO UPDATE SET live = l.live;
END $$;

-- The lanes in which something has arrived, some of them.
CREATE OR REPLACE FUNCTION acta._arrivals(of_ns integer) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT array_agg(DISTINCT a.arriving)
            FROM (SELECT s.arriving FROM acta.standing s WHERE s.ns = of_ns AND s.arriving IS NOT NULL LIMIT 1000) a);
END $$;

-- Puts what has arrived in its lanes. To be called before any job's row is held.
CREATE OR REPLACE FUNCTION acta._admit(of_ns integer, now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    arrived text[] := acta._arrivals(of_ns);
BEGIN
    IF arrived IS NOT NULL THEN
        PERFORM acta._hold_lanes(of_ns, arrived);
        PERFORM acta._admit_into(of_ns, arrived, acta._now(now_ms));
    END IF;
END $$;

-- Of each job whose key is taken, the answer; null for the others. The caller holds the keys.
CREATE OR REPLACE FUNCTION acta._answers(of_ns integer, payloads text[], dedup_keys text[], now_ms bigint)
RETURNS acta.answered[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
    WITH asked AS (
        SELECT i.nth, i.payload, i.key, k.id, k.digest, CASE WHEN k.expires_at IS NULL THEN s.state ELSE k.state END AS state,
               k.id <> '' AND (k.expires_at IS NULL OR k.expires_at > now_ms) AS is_held,
               min(i.nth) OVER (PARTITION BY i.key) AS first
        FROM unnest(payloads, dedup_keys) WITH ORDINALITY i (payload, key, nth)
        -- One look each: a plan that was made when there were few keys looks at all of them.
        LEFT JOIN LATERAL (SELECT * FROM acta.keys o WHERE o.ns = of_ns AND o.key = i.key LIMIT 1) k ON true
        LEFT JOIN LATERAL (SELECT o.state FROM acta.standing o WHERE o.job = k.job LIMIT 1) s ON true
    ), numbered AS (
        SELECT a.*, a.key IS NULL OR (NOT a.is_held AND a.first = a.nth) AS is_made,
               count(*) FILTER (WHERE a.key IS NULL OR (NOT a.is_held AND a.first = a.nth)) OVER (ORDER BY a.nth) AS made
        FROM asked a
    )
    SELECT array_agg(CASE
        WHEN n.is_made THEN NULL
        WHEN n.is_held THEN ROW(n.id, n.state, acta._digest(n.payload) <> n.digest, NULL)::acta.answered
        ELSE ROW(NULL, NULL, n.payload <> payloads[n.first],
                 (SELECT f.made FROM numbered f WHERE f.nth = n.first))::acta.answered END ORDER BY n.nth)
    FROM numbered n);
END $$;

-- Refuses the first job that can't be accepted.
CREATE OR REPLACE FUNCTION acta._check_jobs(has_priority boolean, names text[], priorities smallint[], budgets integer[],
                                            leases bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    clash_at integer;
    clash text;
    known text;
    bad_at integer;
    bad text;
    bad_value bigint;
BEGIN
    IF num_nonnulls(names, priorities, budgets, leases) = 0 THEN
        RETURN;
    END IF;
    -- A name that is known otherwise, or in this very call.
    SELECT c.nth - 1, c.name, c.known INTO clash_at, clash, known
    FROM (
        SELECT i.nth, i.name, n.name AS known, 1 AS which
        FROM (SELECT u.name, min(u.nth) AS nth FROM unnest(names) WITH ORDINALITY u (name, nth) GROUP BY u.name) i
        JOIN acta.names n ON lower(n.name) = lower(i.name) AND n.name <> i.name
        UNION ALL
        SELECT l.nth, l.name, l.before, 2
        FROM (SELECT u.nth, u.name, lag(u.name) OVER (PARTITION BY lower(u.name) ORDER BY u.nth) AS before
              FROM unnest(names) WITH ORDINALITY u (name, nth)) l
        WHERE l.before <> l.name) c
    ORDER BY c.nth, c.which LIMIT 1;
    SELECT f.nth - 1, f.what, CASE f.what WHEN 'priority' THEN f.priority WHEN 'maxAttempts' THEN f.budget ELSE f.lease END
    INTO bad_at, bad, bad_value
    FROM (
        SELECT i.nth, i.budget, i.lease, coalesce(i.priority, n.priority) AS priority,
               CASE WHEN NOT has_priority AND coalesce(i.priority, n.priority) IS NOT NULL THEN 'priority'
                    WHEN i.priority NOT BETWEEN 0 AND 100 THEN 'priority'
                    WHEN i.budget < 1 THEN 'maxAttempts'
                    WHEN i.lease < 1 THEN 'lease' END AS what
        FROM unnest(names, priorities, budgets, leases) WITH ORDINALITY i (name, priority, budget, lease, nth)
        LEFT JOIN acta.names n ON n.name = i.name) f
    WHERE f.what IS NOT NULL
    ORDER BY f.nth LIMIT 1;
    IF bad IS NOT NULL AND (clash IS NULL OR bad_at < clash_at) THEN
        PERFORM acta._refuse('invalid', format('job %s: %s %s %s', bad_at, bad, bad_value, CASE
            WHEN bad = 'lease' THEN 'is no time at all'
            WHEN bad = 'maxAttempts' THEN 'leaves no attempt at all'
            WHEN has_priority THEN 'is not between 0 and 100'
            ELSE 'is refused here: a queue works in insertion order, only a plain namespace has priorities' END),
            bad, bad_value::text, NULL, bad_at);
    ELSIF clash IS NOT NULL THEN
        PERFORM acta._refuse('case', format('name %I differs from the existing %I only by case', clash, known), 'name', clash,
                             known, clash_at);
    END IF;
END $$;

-- Takes note of names that are used.
CREATE OR REPLACE FUNCTION acta._ensure_names(wanted text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO acta.names (name)
    SELECT DISTINCT w FROM unnest(wanted) w
    WHERE w IS NOT NULL AND NOT EXISTS (SELECT 1 FROM acta.names k WHERE k.name = w) ORDER BY w
    ON CONFLICT DO NOTHING;
    -- Another call may have written one of them otherwise since they were checked.
    IF EXISTS (SELECT 1 FROM unnest(wanted) w WHERE w IS NOT NULL AND NOT EXISTS (SELECT 1 FROM acta.names k WHERE k.name = w))
    THEN
        PERFORM acta._check_jobs(true, wanted, NULL, NULL, NULL);
    END IF;
END $$;

-- Puts jobs at the ends of lanes, in their order: of each the lane's number, whether that is paused, and, for those in a lane,
-- the state that they begin in.
CREATE OR REPLACE FUNCTION acta._join_lanes(of_ns integer, lanes text[], run_ats bigint[], now_ms bigint,
                                            OUT numbers bigint[], OUT pauses boolean[], OUT states smallint[])
LANGUAGE plpgsql AS $$
DECLARE
    arrived boolean := EXISTS (SELECT 1 FROM acta.standing s WHERE s.ns = of_ns AND s.arriving = ANY (lanes));
BEGIN
    IF arrived THEN
        PERFORM acta._hold_lanes(of_ns, array_remove(lanes, NULL));
        PERFORM acta._admit_into(of_ns, array_remove(lanes, NULL), acta._now(now_ms));
    END IF;
    WITH asked AS (
        SELECT i.nth, i.lane, i.run_at, row_number() OVER (PARTITION BY i.lane ORDER BY i.nth) AS nth_in_lane
        FROM unnest(lanes, run_ats) WITH ORDINALITY i (lane, run_at, nth)
    ), joined AS (
        INSERT INTO acta.lanes AS l (ns, name, live)
        SELECT of_ns, a.lane, count(*) FROM asked a WHERE a.lane IS NOT NULL GROUP BY a.lane ORDER BY a.lane
        ON CONFLICT (ns, name) DO UPDATE SET live = l.live + excluded.live
        RETURNING l.lane, l.name, l.paused, l.live
    )
    SELECT array_agg(j.lane ORDER BY a.nth), array_agg(j.paused ORDER BY a.nth),
           array_agg(CASE WHEN a.lane IS NULL THEN NULL
                          WHEN j.live > c.added OR a.nth_in_lane > 1 THEN 0
                          WHEN a.run_at > acta._now(now_ms) THEN 2
                          ELSE 1 END::smallint ORDER BY a.nth)
    INTO numbers, pauses, states
    FROM asked a
    LEFT JOIN joined j ON j.name = a.lane
    LEFT JOIN (SELECT g.lane, count(*) AS added FROM asked g GROUP BY g.lane) c ON c.lane = a.lane;
END $$;

-- The ids of new jobs. Salts are four random digits each; those that are not given are drawn.
CREATE OR REPLACE FUNCTION acta._ids(stamp text, numbers bigint[], salts text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    digits constant text := '0123456789abcdefghijklmnopqrstuvwxyz';
    -- Numbers of one call differ in their last digits, nearly always.
    high constant bigint := numbers[1] / 1296;
    before constant text := acta._base36(high);
BEGIN
    IF salts IS NULL THEN
        salts := ARRAY(
            SELECT substr(digits, r / 46656 + 1, 1) || substr(digits, r / 1296 % 36 + 1, 1)
                   || substr(digits, r / 36 % 36 + 1, 1) || substr(digits, r % 36 + 1, 1)
            FROM (SELECT floor(random() * 1679616)::integer AS r FROM generate_series(1, cardinality(numbers))) d);
    END IF;
    RETURN ARRAY(
        SELECT stamp || i.salt || ltrim(CASE WHEN i.number / 1296 = high THEN before ELSE acta._base36(i.number / 1296) END
                                        || substr(digits, (i.number % 1296)::integer / 36 + 1, 1)
                                        || substr(digits, (i.number % 36)::integer + 1, 1), '0')
        FROM (SELECT unnest(numbers) AS number, unnest(salts[1:cardinality(numbers)]) AS salt) i);
END $$;

-- Adds jobs, all or none; one answer each, in order. The arrays stand side by side, one element a job; one that no job has
-- anything in may be null. `own` says that the caller's transaction ends with this call: then lanes are joined at once,
-- otherwise the jobs of a lane arrive, and join it with the next call that works on it.
--
-- Arrays are carried from step to step rather than tables: most of them are null in most calls, and then cost nothing.
CREATE OR REPLACE FUNCTION acta._enqueue(
    queue text, own boolean, payloads text[], names text[], lanes text[], priorities smallint[], run_ats bigint[],
    expiries bigint[], leases bigint[], keys text[], dedup_keys text[], while_live boolean[], budgets integer[],
    retryables boolean[], backoffs text[], traceparents text[], salts text[], now_ms bigint
) RETURNS TABLE (id text, created boolean, state smallint, payload_differs boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space acta.namespaces;
    family record;
    asked integer := coalesce(array_length(payloads, 1), 0);
    has_names boolean := coalesce(array_length(array_remove(names, NULL), 1), 0) > 0;
    has_keys boolean := coalesce(array_length(array_remove(dedup_keys, NULL), 1), 0) > 0;
    -- Most calls name one definition, or none: then it is looked up once.
    is_uniform boolean := has_names AND names[1] = ALL (names);
    only_one acta.names;
    -- Nothing is said of any job but its name and payload, and the definition puts it in no lane: all of them begin alike.
    is_plain boolean := asked > 0 AND (is_uniform OR NOT has_names)
        AND num_nonnulls(lanes, priorities, run_ats, expiries, leases, keys, dedup_keys, while_live, budgets, retryables,
                         backoffs, traceparents) = 0;
    has_begun boolean;
    look record;
    name_numbers integer[];
    retentions bigint[];
    answers acta.answered[];
    numbers bigint[];
    ids text[];
    states smallint[];
    lane_numbers bigint[];
    lane_pauses boolean[];
    stamp text;
    attempts_of integer := CASE WHEN queue LIKE 'queues/%' THEN 1 WHEN queue LIKE 'transactions/%' THEN 3 ELSE 15 END;
BEGIN
    has_begun := _begin(own);
    -- A name that is known as it is written needs no further check.
    SELECT n AS space, d AS definition,
           EXISTS (SELECT 1 FROM lines l WHERE l.ns = n.ns AND l.priority = coalesce(d.priority, 50)) AS has_line
    INTO look
    FROM namespaces n LEFT JOIN names d ON is_uniform AND d.name = names[1]
    WHERE n.path = queue;
    space := look.space;
    only_one := look.definition;
    look.has_line := coalesce(look.has_line, false);
    IF space.ns IS NULL THEN
        space := _ensure_namespace(queue);
    END IF;
    IF only_one.name IS NULL OR num_nonnulls(priorities, budgets, leases, only_one.priority) > 0 THEN
        family := _family(queue);
        IF is_uniform AND num_nonnulls(priorities, budgets, leases) = 0 THEN
            PERFORM _check_jobs(family.has_priority, names[1:1], NULL, NULL, NULL);
        ELSE
            PERFORM _check_jobs(family.has_priority, names, priorities, budgets, leases);
        END IF;
    END IF;
    -- Keys are held in their order, before names and lanes.
    IF has_keys THEN
        INSERT INTO keys AS k (ns, key, id, digest, state)
        SELECT DISTINCT space.ns, d, '', 0, 0 FROM unnest(dedup_keys) d WHERE d IS NOT NULL ORDER BY d
        ON CONFLICT (ns, key) DO UPDATE SET digest = k.digest;
        now_ms := _now(now_ms);
        answers := _answers(space.ns, payloads, dedup_keys, now_ms);
        -- What is left is made.
        SELECT array_agg(i.payload ORDER BY i.nth), array_agg(i.name ORDER BY i.nth),
               array_agg(i.lane ORDER BY i.nth), array_agg(i.priority ORDER BY i.nth), array_agg(i.run_at ORDER BY i.nth),
               array_agg(i.expires_at ORDER BY i.nth), array_agg(i.lease ORDER BY i.nth), array_agg(i.key ORDER BY i.nth),
               array_agg(i.dedup_key ORDER BY i.nth), array_agg(i.is_while_live ORDER BY i.nth),
               array_agg(i.budget ORDER BY i.nth), array_agg(i.retryable ORDER BY i.nth),
               array_agg(i.backoff ORDER BY i.nth), array_agg(i.traceparent ORDER BY i.nth)
        INTO payloads, names, lanes, priorities, run_ats, expiries, leases, keys, dedup_keys, while_live, budgets,
             retryables, backoffs, traceparents
        FROM unnest(payloads, names, lanes, priorities, run_ats, expiries, leases, keys, dedup_keys, while_live, budgets,
                    retryables, backoffs, traceparents)
             WITH ORDINALITY i (payload, name, lane, priority, run_at, expires_at, lease, key, dedup_key, is_while_live,
                                budget, retryable, backoff, traceparent, nth)
        WHERE answers[i.nth] IS NULL;
    END IF;
    -- A name becomes known with the first job that is made under it.
    IF is_uniform AND only_one.name IS NULL THEN
        PERFORM _ensure_names(names[1:1]);
        SELECT * INTO only_one FROM names n WHERE n.name = names[1];
    END IF;
    IF is_uniform THEN
        IF only_one.lane IS NOT NULL THEN
            is_plain := false;
            lanes := ARRAY(SELECT coalesce(i.lane, only_one.lane)
                           FROM unnest(payloads, lanes) WITH ORDINALITY i (payload, lane, nth) ORDER BY i.nth);
        END IF;
    ELSIF has_names THEN
        PERFORM _ensure_names(names);
        SELECT array_agg(n.number ORDER BY i.nth), array_agg(coalesce(i.lane, n.lane) ORDER BY i.nth),
               array_agg(coalesce(i.priority, n.priority) ORDER BY i.nth),
               array_agg(coalesce(i.budget, n.max_attempts) ORDER BY i.nth),
               array_agg(coalesce(i.retryable, n.retryable) ORDER BY i.nth),
               array_agg(coalesce(i.backoff, n.backoff) ORDER BY i.nth), array_agg(n.retention_ms ORDER BY i.nth)
        INTO name_numbers, lanes, priorities, budgets, retryables, backoffs, retentions
        FROM unnest(names, lanes, priorities, budgets, retryables, backoffs)
             WITH ORDINALITY i (name, lane, priority, budget, retryable, backoff, nth)
        LEFT JOIN names n ON n.name = i.name;
    END IF;
    -- Then lanes.
    IF array_length(array_remove(lanes, NULL), 1) > 0 THEN
        IF own THEN
            SELECT j.numbers, j.pauses, j.states INTO lane_numbers, lane_pauses, states
            FROM _join_lanes(space.ns, lanes, run_ats, now_ms) j;
        ELSE
            states := ARRAY(SELECT CASE WHEN i.lane IS NOT NULL THEN 0 END::smallint
                            FROM unnest(lanes) WITH ORDINALITY i (lane, nth) ORDER BY i.nth);
        END IF;
    END IF;
    now_ms := _now(now_ms);
    stamp := regexp_replace(queue, '^.*/', '') || '-item-' || _base36(now_ms) || '-';
    -- Drawn in the order of the jobs. A new array each, so that one row's number is known to all statements.
    numbers := ARRAY(SELECT nextval('acta.numbers') FROM generate_series(1, cardinality(payloads)));
    ids := _ids(stamp, numbers, salts);
    IF is_plain THEN
        IF own AND NOT look.has_line THEN
            INSERT INTO lines (ns, priority, floor) VALUES (space.ns, coalesce(only_one.priority, 50), 0)
            ON CONFLICT DO NOTHING;
        END IF;
        -- One statement: each costs as much as several jobs do.
        RETURN QUERY
        WITH drawn AS MATERIALIZED (
            SELECT unnest(numbers) AS number, unnest(ids) AS id, unnest(payloads) AS payload
        ), told AS (
            INSERT INTO jobs (job, created_at, ns, id, name, backoff, payload)
            SELECT d.number, now_ms, space.ns, d.id, only_one.name, only_one.backoff, d.payload FROM drawn d
        ), placed AS (
            INSERT INTO standing (job, place, retention_ms, ns, name, max_attempts, state, priority, flags)
            SELECT d.number, d.number, only_one.retention_ms, space.ns, coalesce(only_one.number, 0), coalesce(only_one.max_attempts, attempts_of), 1,
                   coalesce(only_one.priority, 50),
                   CASE WHEN coalesce(only_one.retryable, true) THEN 0 ELSE 8 END | CASE WHEN own THEN 256 ELSE 0 END
            FROM drawn d
        ), counted AS (
            INSERT INTO changes (ns, at, amounts) VALUES (space.ns, now_ms, ARRAY[0, asked])
        )
        SELECT d.id, true, 1::smallint, false FROM drawn d;
        RETURN;
    END IF;
    IF states IS NULL AND run_ats IS NULL THEN
        states := array_fill(1::smallint, ARRAY[cardinality(numbers)]);
    ELSE
        states := ARRAY(SELECT coalesce(i.state, CASE WHEN i.run_at > now_ms THEN 2 ELSE 1 END::smallint)
                        FROM unnest(numbers, states, run_ats) WITH ORDINALITY i (job, state, run_at, nth) ORDER BY i.nth);
    END IF;
    INSERT INTO jobs (job, created_at, lease_ms, ns, id, name, lane, key, dedup_key, backoff, traceparent, payload)
    SELECT i.job, now_ms, i.lease, space.ns, i.id, i.name, i.lane, i.key, i.dedup_key,
           coalesce(i.backoff, only_one.backoff), i.traceparent, i.payload
    FROM unnest(numbers, leases, ids, names, lanes, keys, dedup_keys, backoffs, traceparents, payloads)
         i (job, lease, id, name, lane, key, dedup_key, backoff, traceparent, payload);
    WITH added AS (
        INSERT INTO standing (job, place, lane, run_at, expires_at, due_at, retention_ms, ns, name, max_attempts, state, priority, flags,
                              arriving)
        SELECT i.job, i.job, i.lane_number, i.run_at, i.expires_at,
               least(CASE WHEN i.state = 2 THEN i.run_at END, i.expires_at), coalesce(i.retention, only_one.retention_ms), space.ns,
               coalesce(i.number, only_one.number, 0), coalesce(i.budget, only_one.max_attempts, attempts_of),
               i.state, coalesce(i.priority, only_one.priority, 50),
               CASE WHEN coalesce(i.retryable, only_one.retryable, true) THEN 0 ELSE 8 END
               | CASE WHEN i.dedup_key IS NULL THEN 0 WHEN i.is_while_live THEN 128 ELSE 64 END
               | CASE WHEN i.is_paused AND i.state <> 0 THEN 2 ELSE 0 END
               | CASE WHEN own AND i.state = 1 THEN 256 ELSE 0 END,
               CASE WHEN NOT own THEN i.lane END
        FROM unnest(numbers, lane_numbers, lane_pauses, states, run_ats, expiries, retentions, name_numbers, budgets,
                    priorities, retryables, dedup_keys, while_live, lanes)
             i (job, lane_number, is_paused, state, run_at, expires_at, retention, number, budget, priority, retryable,
                dedup_key, is_while_live, lane)
        RETURNING state, priority
    ), counted AS (
        INSERT INTO changes (ns, at, amounts)
        SELECT space.ns, now_ms, ARRAY[count(*) FILTER (WHERE a.state = 0), count(*) FILTER (WHERE a.state = 1),
                                       count(*) FILTER (WHERE a.state = 2)]
        FROM added a HAVING count(*) > 0
    )
    INSERT INTO lines (ns, priority, floor)
    SELECT space.ns, a.priority, 0 FROM added a
    WHERE own GROUP BY a.priority
    HAVING NOT EXISTS (SELECT 1 FROM lines l WHERE l.ns = space.ns AND l.priority = a.priority)
    ORDER BY 2
    ON CONFLICT DO NOTHING;
    -- Claims look for what is due from an instant on before which nothing was. Of a caller's own transaction nobody may have to
    -- wait for that row: there the next look at the whole queue finds such a job.
    IF own AND expiries IS NOT NULL THEN
        UPDATE namespaces n SET due_from = e.first
        FROM (SELECT min(x) AS first FROM unnest(expiries) x) e
        WHERE n.ns = space.ns AND n.due_from > e.first;
    END IF;
    IF NOT has_keys THEN
        RETURN QUERY SELECT a.id, true, a.state, false FROM unnest(ids, states) a (id, state);
        RETURN;
    END IF;
    UPDATE keys k
    SET id = m.id, job = m.job, digest = _digest(m.payload), state = m.state, expires_at = NULL
    FROM unnest(numbers, ids, states, payloads, dedup_keys) m (job, id, state, payload, dedup_key)
    CROSS JOIN LATERAL (SELECT o.ctid AS place FROM keys o WHERE o.ns = space.ns AND o.key = m.dedup_key LIMIT 1) o
    WHERE k.ctid = o.place;
    RETURN QUERY
    SELECT coalesce(a.id, ids[m.made]), a.id IS NULL AND a.twin IS NULL, coalesce(a.state, states[m.made]),
           coalesce(a.payload_differs, false)
    FROM (SELECT i.nth, (answers[i.nth]).*, count(*) FILTER (WHERE answers[i.nth] IS NULL) OVER (ORDER BY i.nth) AS so_far
          FROM generate_series(1, asked) WITH ORDINALITY i (nth, nth_too)) a
    -- One that has the key of another job of this call is told of that one.
    CROSS JOIN LATERAL (SELECT coalesce(a.twin, a.so_far) AS made) m
    ORDER BY a.nth;
END $$;
