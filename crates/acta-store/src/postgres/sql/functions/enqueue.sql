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
LANGUAGE sql AS $$
    INSERT INTO acta.lanes AS l (ns, name, live)
    SELECT DISTINCT of_ns, n, 0 FROM unnest(names) n ORDER BY n
    ON CONFLICT (ns, name) DO UPDATE SET live = l.live
$$;

-- The lanes in which something has arrived, some of them.
CREATE OR REPLACE FUNCTION acta._arrivals(of_ns integer) RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(DISTINCT a.arriving)
    FROM (SELECT s.arriving FROM acta.standing s WHERE s.ns = of_ns AND s.arriving IS NOT NULL LIMIT 1000) a
$$;

-- Adds jobs, all or none; one answer each, in order. The arrays stand side by side, one element a job; one that no job has
-- anything in may be null. `own` says that the caller's transaction ends with this call: then lanes are joined at once,
-- otherwise the jobs of a lane arrive, and join it with the next call that works on it.
CREATE OR REPLACE FUNCTION acta._enqueue(
    queue text, own boolean, payloads text[], names text[], lanes text[], priorities smallint[], run_ats bigint[],
    expiries bigint[], leases bigint[], keys text[], dedup_keys text[], while_live boolean[], budgets integer[],
    retryables boolean[], backoffs text[], salts integer[], now_ms bigint
) RETURNS TABLE (id text, created boolean, state smallint, payload_differs boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space acta.namespaces;
    family record;
    has_names boolean := coalesce(array_length(array_remove(names, NULL), 1), 0) > 0;
    clash_at integer;
    clash text;
    known text;
    bad_at integer;
    bad text;
    bad_value bigint;
    found_lanes text[];
    has_keys boolean := coalesce(array_length(array_remove(dedup_keys, NULL), 1), 0) > 0;
    -- Of each job: 0 if it is to be made, else the number of the job of this call whose key it has, or -1.
    double_of integer[];
    held_ids text[];
    held_states smallint[];
    held_digests bigint[];
    stamp text;
    made_at integer[];
    made_ids text[];
    made_states smallint[];
    created_before integer := 0;
    asked record;
BEGIN
    PERFORM _begin(own);
    space := _ensure_namespace(queue);
    family := _family(queue);

    -- Names first: they are what every other call looks at, too.
    IF has_names THEN
        SELECT i.nth - 1, i.name, coalesce(n.name, e.name) INTO clash_at, clash, known
        FROM unnest(names) WITH ORDINALITY i (name, nth)
        LEFT JOIN names n ON lower(n.name) = lower(i.name) AND n.name <> i.name
        LEFT JOIN LATERAL (SELECT e.name FROM unnest(names) WITH ORDINALITY e (name, nth)
                           WHERE lower(e.name) = lower(i.name) AND e.name <> i.name AND e.nth < i.nth
                           ORDER BY e.nth DESC LIMIT 1) e ON n.name IS NULL
        WHERE n.name IS NOT NULL OR e.name IS NOT NULL
        ORDER BY i.nth LIMIT 1;
    END IF;
    SELECT f.nth - 1, f.what, CASE f.what WHEN 'priority' THEN f.priority WHEN 'maxAttempts' THEN f.budget ELSE f.lease END
    INTO bad_at, bad, bad_value
    FROM (
        SELECT i.nth, i.budget, i.lease, coalesce(i.priority, n.priority) AS priority,
               CASE WHEN NOT family.has_priority AND coalesce(i.priority, n.priority) IS NOT NULL THEN 'priority'
                    WHEN i.priority NOT BETWEEN 0 AND 100 THEN 'priority'
                    WHEN i.budget < 1 THEN 'maxAttempts'
                    WHEN i.lease < 1 THEN 'lease' END AS what
        FROM unnest(payloads, names, priorities, budgets, leases)
             WITH ORDINALITY i (payload, name, priority, budget, lease, nth)
        LEFT JOIN names n ON n.name = i.name) f
    WHERE f.what IS NOT NULL
    ORDER BY f.nth LIMIT 1;
    IF bad IS NOT NULL AND (clash IS NULL OR bad_at < clash_at) THEN
        PERFORM _refuse('invalid', format('job %s: %s %s is not allowed here', bad_at, bad, bad_value), bad, bad_value::text,
                        NULL, bad_at);
    ELSIF clash IS NOT NULL THEN
        PERFORM _refuse('case', format('name %I differs from the existing %I only by case', clash, known), 'name', clash, known,
                        clash_at);
    END IF;
    IF has_names THEN
        INSERT INTO names (name) SELECT DISTINCT n FROM unnest(names) n
        WHERE n IS NOT NULL AND NOT EXISTS (SELECT 1 FROM names k WHERE k.name = n) ORDER BY n
        ON CONFLICT DO NOTHING;
    END IF;

    -- Then keys, in their order.
    IF has_keys THEN
        INSERT INTO keys AS k (ns, key, id, digest, state)
        SELECT DISTINCT space.ns, d, '', 0, 0 FROM unnest(dedup_keys) d WHERE d IS NOT NULL ORDER BY d
        ON CONFLICT (ns, key) DO UPDATE SET digest = k.digest;
    END IF;
    now_ms := _now(now_ms);
    IF has_keys THEN
        SELECT array_agg(d.double_of ORDER BY d.nth), array_agg(d.id ORDER BY d.nth), array_agg(d.state ORDER BY d.nth),
               array_agg(d.digest ORDER BY d.nth)
        INTO double_of, held_ids, held_states, held_digests
        FROM (
            SELECT i.nth, k.id, k.digest,
                   CASE WHEN k.expires_at IS NULL THEN s.state ELSE k.state END AS state,
                   CASE WHEN i.key IS NULL THEN 0
                        WHEN k.id <> '' AND (k.expires_at IS NULL OR k.expires_at > now_ms) THEN -1
                        WHEN min(i.nth) OVER (PARTITION BY i.key) < i.nth THEN min(i.nth) OVER (PARTITION BY i.key)
                        ELSE 0 END AS double_of
            FROM unnest(dedup_keys) WITH ORDINALITY i (key, nth)
            LEFT JOIN keys k ON k.ns = space.ns AND k.key = i.key
            LEFT JOIN standing s ON s.job = k.job
        ) d;
    END IF;

    -- Then lanes.
    SELECT array_agg(DISTINCT w.lane) INTO found_lanes
    FROM (SELECT coalesce(i.lane, n.lane) AS lane, i.nth
          FROM unnest(payloads, lanes, names) WITH ORDINALITY i (payload, lane, name, nth)
          LEFT JOIN names n ON n.name = i.name) w
    WHERE w.lane IS NOT NULL AND coalesce(double_of[w.nth], 0) = 0;
    IF own AND found_lanes IS NOT NULL THEN
        PERFORM _hold_lanes(space.ns, found_lanes);
        IF EXISTS (SELECT 1 FROM standing s WHERE s.ns = space.ns AND s.arriving = ANY (found_lanes)) THEN
            PERFORM _admit_into(space.ns, found_lanes, now_ms);
        END IF;
    END IF;

    stamp := family.queue || '-item-' || _base36(now_ms) || '-';
    WITH given AS (
        SELECT i.*, n.number, coalesce(i.lane, n.lane) AS joined, coalesce(i.priority, n.priority, 50::smallint) AS ranked,
               coalesce(i.budget, n.max_attempts, family.max_attempts) AS allowed,
               coalesce(i.retryable, n.retryable, true) AS may_retry,
               coalesce(i.backoff, n.backoff) AS delays, n.retention_ms
        FROM unnest(payloads, names, lanes, priorities, run_ats, expiries, leases, keys, dedup_keys, while_live, budgets,
                    retryables, backoffs)
             WITH ORDINALITY i (payload, name, lane, priority, run_at, expires_at, lease_ms, key, dedup_key, is_while_live,
                                budget, retryable, backoff, nth)
        LEFT JOIN names n ON n.name = i.name
        WHERE coalesce(double_of[i.nth], 0) = 0
        ORDER BY i.nth
    ), numbered AS MATERIALIZED (
        SELECT g.*, nextval('acta.numbers') AS job FROM given g
    ), salted AS MATERIALIZED (
        SELECT n.*,
               coalesce(salts[row_number() OVER (ORDER BY n.nth)], floor(random() * 1679616)::integer) AS salt,
               l.lane AS lane_number, l.paused,
               l.live > 0 OR row_number() OVER (PARTITION BY n.joined ORDER BY n.nth) > 1 AS is_behind
        FROM numbered n
        LEFT JOIN lanes l ON own AND n.joined IS NOT NULL AND l.ns = space.ns AND l.name = n.joined
    ), made AS MATERIALIZED (
        SELECT m.*,
               stamp
               || substr('0123456789abcdefghijklmnopqrstuvwxyz', m.salt / 46656 % 36 + 1, 1)
               || substr('0123456789abcdefghijklmnopqrstuvwxyz', m.salt / 1296 % 36 + 1, 1)
               || substr('0123456789abcdefghijklmnopqrstuvwxyz', m.salt / 36 % 36 + 1, 1)
               || substr('0123456789abcdefghijklmnopqrstuvwxyz', m.salt % 36 + 1, 1)
               || _base36(m.job) AS id,
               CASE WHEN m.joined IS NOT NULL AND (NOT own OR m.is_behind) THEN 0
                    WHEN m.run_at > now_ms THEN 2
                    ELSE 1 END::smallint AS state
        FROM salted m
    ), identities AS (
        INSERT INTO jobs (job, created_at, lease_ms, ns, id, name, lane, key, dedup_key, backoff, payload)
        SELECT m.job, now_ms, m.lease_ms, space.ns, m.id, m.name, m.joined, m.key, m.dedup_key, m.delays, m.payload
        FROM made m
    ), standings AS (
        INSERT INTO standing (job, place, lane, run_at, expires_at, retention_ms, ns, name, max_attempts, state, priority,
                              flags, arriving)
        SELECT m.job, m.job, m.lane_number, m.run_at, m.expires_at, m.retention_ms, space.ns, coalesce(m.number, 0),
               m.allowed, m.state, m.ranked,
               CASE WHEN m.may_retry THEN 0 ELSE 8 END
               | CASE WHEN m.dedup_key IS NULL THEN 0 WHEN m.is_while_live THEN 128 ELSE 64 END
               | CASE WHEN m.paused AND m.state <> 0 THEN 2 ELSE 0 END
               | CASE WHEN own AND m.state = 1 THEN 256 ELSE 0 END,
               CASE WHEN NOT own THEN m.joined END
        FROM made m
    ), counted AS (
        INSERT INTO changes (ns, at, amounts)
        SELECT space.ns, now_ms, ARRAY[count(*) FILTER (WHERE m.state = 0), count(*) FILTER (WHERE m.state = 1),
                                       count(*) FILTER (WHERE m.state = 2)]
        FROM made m
        HAVING count(*) > 0
    ), joined AS (
        UPDATE lanes l SET live = l.live + w.added
        FROM (SELECT m.lane_number, count(*) AS added FROM made m GROUP BY m.lane_number) w
        WHERE l.lane = w.lane_number
    ), kept AS (
        UPDATE keys k
        SET id = m.id, job = m.job, digest = _digest(m.payload), state = m.state, expires_at = NULL
        FROM made m
        WHERE has_keys AND k.ns = space.ns AND k.key = m.dedup_key
    ), lined AS (
        INSERT INTO lines (ns, priority, floor)
        SELECT DISTINCT space.ns, m.ranked, 0 FROM made m
        WHERE own AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.ns = space.ns AND l.priority = m.ranked)
        ORDER BY 2
        ON CONFLICT DO NOTHING
    )
    SELECT array_agg(m.nth ORDER BY m.nth), array_agg(m.id ORDER BY m.nth), array_agg(m.state ORDER BY m.nth)
    INTO made_at, made_ids, made_states
    FROM made m;
    IF NOT has_keys THEN
        RETURN QUERY SELECT a.id, true, a.state, false FROM unnest(made_ids, made_states) a (id, state);
        RETURN;
    END IF;
    FOR asked IN
        SELECT i.* FROM unnest(payloads, double_of, held_ids, held_states, held_digests)
                        WITH ORDINALITY i (payload, double, id, state, digest, nth)
        ORDER BY i.nth
    LOOP
        payload_differs := false;
        created := asked.double = 0;
        IF asked.double = 0 THEN
            created_before := created_before + 1;
            id := made_ids[created_before];
            state := made_states[created_before];
        ELSIF asked.double = -1 THEN
            id := asked.id;
            state := asked.state;
            payload_differs := _digest(asked.payload) <> asked.digest;
        ELSE
            -- Another one of this very call.
            id := made_ids[array_position(made_at, asked.double)];
            state := made_states[array_position(made_at, asked.double)];
            payload_differs := asked.payload <> payloads[asked.double];
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
