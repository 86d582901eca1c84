-- The ledger for programs of any language. What begins with an underscore is for these functions, and may change with any
-- release; the others stay. docs/POSTGRES.md says how they are used. No rule is written here: they check what they are given
-- and call what the other functions are.

CREATE OR REPLACE FUNCTION acta._state_word(state smallint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT ('{blocked,ready,scheduled,claimed,running,waiting,succeeded,failed,cancelled}'::text[])[state + 1]
$$;

-- Checks jobs and adds them in the caller's transaction. The arrays stand side by side; `prefix` is what stands before an
-- argument's name in a refusal, with %s for the job's number.
CREATE OR REPLACE FUNCTION acta._enqueue_checked(
    queue text, prefix text, payloads text[], names text[], lanes text[], priorities integer[], run_ats timestamptz[],
    expiries timestamptz[], leases bigint[], keys text[], dedup_keys text[], while_live boolean[], budgets integer[],
    retryables boolean[], backoffs text[], traceparents text[]
) RETURNS TABLE (id text, created boolean, state text, payload_differs boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    bad record;
BEGIN
    PERFORM acta._check_queue(queue);
    SELECT i.nth - 1 AS at, f.what, f.given, f.why INTO bad
    FROM (
        SELECT u.*, ARRAY[
            CASE WHEN u.payload IS NULL THEN 'is missing; JSON null is a payload, too' ELSE acta._json_fault(u.payload) END,
            acta._name_fault(u.name),
            acta._label_fault(u.lane),
            CASE WHEN u.priority NOT BETWEEN 0 AND 100 THEN 'is not between 0 and 100' END,
            acta._instant_fault(u.run_at),
            acta._instant_fault(u.expires_at),
            CASE WHEN u.lease < 1 THEN 'is no time at all' END,
            acta._label_fault(u.key),
            acta._label_fault(u.dedup_key),
            CASE WHEN u.is_while_live AND u.dedup_key IS NULL THEN 'says nothing without a dedup key' END,
            CASE WHEN u.budget < 1 THEN 'leaves no attempt at all' END,
            CASE WHEN u.backoff IS NOT NULL THEN acta._backoff_fault(u.backoff) END,
            acta._traceparent_fault(u.traceparent)] AS faults
        FROM unnest(payloads, names, lanes, priorities, run_ats, expiries, leases, keys, dedup_keys, while_live, budgets, backoffs,
                    traceparents)
             WITH ORDINALITY u (payload, name, lane, priority, run_at, expires_at, lease, key, dedup_key, is_while_live, budget,
                                backoff, traceparent, nth)) i
    CROSS JOIN LATERAL unnest(
        '{payload,name,lane,priority,runAt,expiresAt,lease,key,dedupKey,whileLive,maxAttempts,backoff,traceparent}'::text[],
        ARRAY[i.payload, i.name, i.lane, i.priority::text, i.run_at::text, i.expires_at::text, i.lease::text, i.key,
              i.dedup_key, i.is_while_live::text, i.budget::text, i.backoff, i.traceparent],
        i.faults) f (what, given, why)
    WHERE num_nonnulls(VARIADIC i.faults) > 0 AND f.why IS NOT NULL
    ORDER BY i.nth LIMIT 1;
    IF FOUND THEN
        PERFORM acta._demand(format(prefix, bad.at) || bad.what, bad.given, bad.why);
    END IF;
    -- A column that no job has anything in costs nothing if it is left out.
    RETURN QUERY
    SELECT e.id, e.created, acta._state_word(e.state), e.payload_differs
    FROM acta._enqueue(queue, false, payloads,
                       CASE WHEN cardinality(array_remove(names, NULL)) > 0 THEN names END,
                       CASE WHEN cardinality(array_remove(lanes, NULL)) > 0 THEN lanes END,
                       CASE WHEN cardinality(array_remove(priorities, NULL)) > 0 THEN priorities::smallint[] END,
                       CASE WHEN cardinality(array_remove(run_ats, NULL)) > 0
                            THEN ARRAY(SELECT acta._ms(t) FROM unnest(run_ats) WITH ORDINALITY u (t, nth) ORDER BY nth) END,
                       CASE WHEN cardinality(array_remove(expiries, NULL)) > 0
                            THEN ARRAY(SELECT acta._ms(t) FROM unnest(expiries) WITH ORDINALITY u (t, nth) ORDER BY nth) END,
                       CASE WHEN cardinality(array_remove(leases, NULL)) > 0 THEN leases END,
                       CASE WHEN cardinality(array_remove(keys, NULL)) > 0 THEN keys END,
                       CASE WHEN cardinality(array_remove(dedup_keys, NULL)) > 0 THEN dedup_keys END,
                       CASE WHEN cardinality(array_remove(while_live, NULL)) > 0 THEN while_live END,
                       CASE WHEN cardinality(array_remove(budgets, NULL)) > 0 THEN budgets END,
                       CASE WHEN cardinality(array_remove(retryables, NULL)) > 0 THEN retryables END,
                       CASE WHEN cardinality(array_remove(backoffs, NULL)) > 0
                            THEN ARRAY(SELECT acta._backoff_text(b) FROM unnest(backoffs) WITH ORDINALITY u (b, nth)
                                       ORDER BY nth) END,
                       CASE WHEN cardinality(array_remove(traceparents, NULL)) > 0 THEN traceparents END, NULL, NULL) e;
END $$;

CREATE OR REPLACE FUNCTION acta.enqueue(
    queue text, payload json, name text DEFAULT NULL, lane text DEFAULT NULL, priority integer DEFAULT NULL,
    run_at timestamptz DEFAULT NULL, expires_at timestamptz DEFAULT NULL, lease interval DEFAULT NULL, key text DEFAULT NULL,
    dedup_key text DEFAULT NULL, while_live boolean DEFAULT false, max_attempts integer DEFAULT NULL,
    retryable boolean DEFAULT NULL, backoff json DEFAULT NULL, traceparent text DEFAULT NULL
) RETURNS TABLE (id text, created boolean, state text, payload_differs boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT e.id, e.created, e.state, e.payload_differs
    FROM _enqueue_checked(queue, '', ARRAY[_json_text(payload)], ARRAY[name], ARRAY[lane], ARRAY[priority], ARRAY[run_at],
                          ARRAY[expires_at], ARRAY[_interval_ms(lease)], ARRAY[key], ARRAY[dedup_key],
                          ARRAY[CASE WHEN while_live THEN true END], ARRAY[max_attempts], ARRAY[retryable],
                          ARRAY[nullif(_json_text(backoff), 'null')], ARRAY[traceparent]) e;
END $$;
COMMENT ON FUNCTION acta.enqueue(text, json, text, text, integer, timestamptz, timestamptz, interval, text, text, boolean,
                                 integer, boolean, json, text)
IS 'Adds a job in the caller''s transaction: nobody sees it before the commit, and nobody waits for that.';

CREATE OR REPLACE FUNCTION acta.enqueue_many(queue text, jobs json)
RETURNS TABLE (id text, created boolean, state text, payload_differs boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
#variable_conflict use_column
DECLARE
    told record := _members('jobs', jobs, 250000, '{"payload": "json", "name": "text", "lane": "text", "priority": "number",
        "runAt": "instant", "expiresAt": "instant", "lease": "span", "key": "text", "dedupKey": "text", "whileLive": "flag",
        "maxAttempts": "number", "retryable": "flag", "backoff": "backoff", "traceparent": "text"}');
    a record;
BEGIN
    IF told.size = 0 THEN
        PERFORM _check_queue(queue);
        RETURN;
    END IF;
    WITH each AS (
        SELECT m.nth,
               max(m.val) FILTER (WHERE m.key = 'payload') AS payload, max(m.val) FILTER (WHERE m.key = 'name') AS name,
               max(m.val) FILTER (WHERE m.key = 'lane') AS lane, max(m.val) FILTER (WHERE m.key = 'priority') AS priority,
               max(m.val) FILTER (WHERE m.key = 'runAt') AS run_at, max(m.val) FILTER (WHERE m.key = 'expiresAt') AS expires_at,
               max(m.val) FILTER (WHERE m.key = 'lease') AS lease, max(m.val) FILTER (WHERE m.key = 'key') AS key,
               max(m.val) FILTER (WHERE m.key = 'dedupKey') AS dedup_key,
               max(m.val) FILTER (WHERE m.key = 'whileLive') AS while_live,
               max(m.val) FILTER (WHERE m.key = 'maxAttempts') AS budget,
               max(m.val) FILTER (WHERE m.key = 'retryable') AS retryable,
               max(m.val) FILTER (WHERE m.key = 'backoff') AS backoff,
               max(m.val) FILTER (WHERE m.key = 'traceparent') AS traceparent
        FROM unnest(told.nths, told.keys, told.vals) m (nth, key, val)
        GROUP BY m.nth
    )
    SELECT array_agg(e.payload ORDER BY n) AS payloads, array_agg(e.name ORDER BY n) AS names,
           array_agg(e.lane ORDER BY n) AS lanes, array_agg(e.priority::integer ORDER BY n) AS priorities,
           array_agg(_instant_of(e.run_at) ORDER BY n) AS run_ats, array_agg(_instant_of(e.expires_at) ORDER BY n) AS expiries,
           array_agg(_span_of(e.lease) ORDER BY n) AS leases, array_agg(e.key ORDER BY n) AS keys,
           array_agg(e.dedup_key ORDER BY n) AS dedup_keys,
           array_agg(CASE WHEN e.while_live::boolean THEN true END ORDER BY n) AS while_live,
           array_agg(e.budget::integer ORDER BY n) AS budgets, array_agg(e.retryable::boolean ORDER BY n) AS retryables,
           array_agg(e.backoff ORDER BY n) AS backoffs, array_agg(e.traceparent ORDER BY n) AS traceparents
    INTO a
    FROM generate_series(1, told.size) n LEFT JOIN each e ON e.nth = n;
    RETURN QUERY
    SELECT e.id, e.created, e.state, e.payload_differs
    FROM _enqueue_checked(queue, 'jobs[%s].', a.payloads, a.names, a.lanes, a.priorities, a.run_ats, a.expiries, a.leases,
                          a.keys, a.dedup_keys, a.while_live, a.budgets, a.retryables, a.backoffs, a.traceparents) e;
END $$;
COMMENT ON FUNCTION acta.enqueue_many(text, json)
IS 'Adds jobs, all or none, in the caller''s transaction: an array of objects; one answer each, in order.';

-- Takes hold of those lanes that nobody else has hold of, and lets what has arrived there join them. A claim in somebody's
-- transaction may hold lanes already, in any order: it must not wait for others.
CREATE OR REPLACE FUNCTION acta._admit_at_hand(of_ns integer, now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    arrived text[] := acta._arrivals(of_ns);
BEGIN
    IF arrived IS NULL THEN
        RETURN;
    END IF;
    -- Who makes a lane that another one is just making would wait for that one's commit.
    INSERT INTO acta.lanes (ns, name, live)
    SELECT of_ns, m.name, 0
    FROM (SELECT a AS name FROM unnest(arrived) a
          WHERE NOT EXISTS (SELECT 1 FROM acta.lanes l WHERE l.ns = of_ns AND l.name = a) ORDER BY a LIMIT 100) m
    WHERE pg_try_advisory_xact_lock(1633907810, hashtext(of_ns || m.name))
    ON CONFLICT DO NOTHING;
    arrived := ARRAY(SELECT l.name FROM acta.lanes l WHERE l.ns = of_ns AND l.name = ANY (arrived) ORDER BY l.name
                     FOR UPDATE SKIP LOCKED);
    PERFORM acta._admit_into(of_ns, arrived, acta._now(now_ms));
END $$;

CREATE OR REPLACE FUNCTION acta.claim(
    queue text, worker text, count integer DEFAULT 1, lease interval DEFAULT NULL, names text[] DEFAULT NULL
) RETURNS TABLE (id text, fence bigint, payload json, name text, lane text, attempt integer, max_attempts integer,
                 lease_expires_at timestamptz, created_at timestamptz, key text, traceparent text)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space namespaces;
    bad record;
BEGIN
    PERFORM _check_queue(queue);
    PERFORM _demand('worker', worker, CASE WHEN worker IS NULL THEN 'is missing' ELSE _label_fault(worker) END);
    PERFORM _demand('count', claim.count::text, CASE WHEN (claim.count BETWEEN 1 AND 10000) IS NOT TRUE
                    THEN 'is not between 1 and 10000' END);
    PERFORM _demand('lease', lease::text, CASE WHEN _interval_ms(lease) < 1 THEN 'is no time at all' END);
    FOR bad IN SELECT n, coalesce(_name_fault(n), CASE WHEN n IS NULL THEN 'is missing' END) AS why FROM unnest(names) n LOOP
        PERFORM _demand('name', bad.n, bad.why);
    END LOOP;
    PERFORM _begin(true);
    space := _namespace(queue);
    IF space.ns IS NULL THEN
        RETURN;
    END IF;
    PERFORM _admit_at_hand(space.ns, NULL);
    RETURN QUERY
    SELECT c.id, c.fence, c.payload::json, c.name, c.lane, c.attempts, c.max_attempts, _instant(c.lease_expires_at),
           _instant(c.created_at), c.key, c.traceparent
    FROM _exchange(queue, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, worker, claim.count,
                   _interval_ms(lease), names, false, NULL) c
    ORDER BY c.priority DESC, c.place;
END $$;
COMMENT ON FUNCTION acta.claim(text, text, integer, interval, text[])
IS 'Hands out up to `count` jobs, each under a fence that its holder shows from then on.';

-- The numbers that stand in the ids of jobs.
CREATE OR REPLACE FUNCTION acta._rows_of(ids text[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(acta._row_of(i.id) ORDER BY i.nth) FROM unnest(ids) WITH ORDINALITY i (id, nth)
$$;

CREATE OR REPLACE FUNCTION acta.heartbeat(queue text, ids text[], fences bigint[], lease interval DEFAULT NULL)
RETURNS TABLE (id text, lease_expires_at timestamptz, cancel_requested boolean, lost boolean, busy boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
#variable_conflict use_column
DECLARE
    bad record;
BEGIN
    PERFORM _check_queue(queue);
    PERFORM _demand('number of ids', cardinality(ids)::text, CASE WHEN cardinality(ids) > 10000 THEN 'is more than the 10000 allowed' END);
    PERFORM _demand('number of fences', cardinality(fences)::text,
                    CASE WHEN cardinality(fences) IS DISTINCT FROM cardinality(ids) THEN 'is not that of the ids; give one each' END);
    PERFORM _demand('lease', lease::text, CASE WHEN _interval_ms(lease) < 1 THEN 'is no time at all' END);
    SELECT i.id, i.fence INTO bad FROM unnest(ids, fences) i (id, fence)
    WHERE i.fence IS NULL OR _id_fault(i.id) IS NOT NULL LIMIT 1;
    IF FOUND THEN
        PERFORM _demand('id', bad.id, coalesce(_id_fault(bad.id), 'has no fence; give the one that the claim handed out'));
    END IF;
    RETURN QUERY
    SELECT ids[h.nth], CASE WHEN h.fault IS NULL THEN _instant(h.lease_expires_at) END,
           h.fault IS NULL AND h.cancel_requested, h.fault IS NOT NULL AND h.fault <> 'busy', h.fault IS NOT DISTINCT FROM 'busy'
    FROM ROWS FROM (_heartbeat(queue, _rows_of(ids), ids, fences, NULL, _interval_ms(lease), NULL))
         WITH ORDINALITY h (fault, state, fence, holder, lease_expires_at, cancel_requested, nth);
END $$;
COMMENT ON FUNCTION acta.heartbeat(text, text[], bigint[], interval)
IS 'Extends leases from now on, never shortens them. `lost`: stop working on it. `busy`: somebody is changing it, ask again.';

-- The first bytes of a text, for what is too long to be kept whole.
CREATE OR REPLACE FUNCTION acta._cut(given text, most integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    bytes bytea;
BEGIN
    IF octet_length(given) <= most THEN
        RETURN given;
    END IF;
    bytes := convert_to(given, 'UTF8');
    -- Not within a character.
    WHILE get_byte(bytes, most) & 192 = 128 LOOP
        most := most - 1;
    END LOOP;
    RETURN convert_from(substr(bytes, 1, most), 'UTF8') || '…';
END $$;

-- A length of time as every substrate writes it.
CREATE OR REPLACE FUNCTION acta._span_text(ms bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN ms = 0 THEN '0s'
                ELSE (SELECT ms / u.length || u.unit
                      FROM (VALUES (1, 86400000, 'd'), (2, 3600000, 'h'), (3, 60000, 'm'), (4, 1000, 's'), (5, 1, 'ms'))
                           u (nth, length, unit)
                      WHERE ms % u.length = 0 ORDER BY u.nth LIMIT 1) END
$$;

-- How a claim ended, in the form that `_settle` takes: `mark` knows a repeated one, and is the digest of the text that every
-- substrate writes of an outcome (acta-core: Outcome::mark), so that a repeat may come from anywhere.
CREATE OR REPLACE FUNCTION acta._outcome(
    word text, output text, kind text, message text, code text, details text, retry_ms bigint, until timestamptz, signal text,
    OUT fault_of text, OUT fault text, OUT outcome smallint, OUT mark bigint, OUT told text, OUT instant bigint
)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    written text;
    at_text text;
BEGIN
    IF word = 'succeeded' AND output IS NULL THEN
        -- Nearly all.
        outcome := 0;
        mark := 0;
        RETURN;
    END IF;
    IF acta._instant_fault(until) IS NULL THEN
        at_text := '"' || to_char(acta._instant(acta._ms(until)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"';
    END IF;
    IF acta._instant_fault(until) IS NOT NULL THEN
        fault_of := 'until';
        fault := acta._instant_fault(until);
    ELSIF word = 'succeeded' THEN
        fault_of := 'output';
        fault := acta._json_fault(output);
        outcome := 0;
        told := output;
        written := '["succeeded",' || output || ']';
    ELSIF word = 'failed' THEN
        fault_of := CASE WHEN message IS NULL THEN 'message' WHEN kind IN ('business', 'system') THEN 'details' ELSE 'kind' END;
        fault := CASE fault_of WHEN 'message' THEN 'is missing; say what went wrong'
                               WHEN 'kind' THEN 'is neither business nor system'
                               ELSE acta._json_fault(details) END;
        IF fault IS NULL AND retry_ms < 0 THEN
            fault_of := 'retryAfter';
            fault := 'is before now';
        END IF;
        outcome := CASE kind WHEN 'business' THEN 2 ELSE 1 END;
        told := '{"kind":"' || kind || '","message":' || to_json(acta._cut(message, 65536))
                || coalesce(',"code":' || to_json(acta._cut(code, 1024)), '') || coalesce(',"details":' || details, '') || '}';
        instant := retry_ms;
        written := '["failed","' || kind || '",' || to_json(message) || ',' || coalesce(to_json(code)::text, 'null') || ','
                   || coalesce(details, 'null') || ',' || coalesce('"' || acta._span_text(retry_ms) || '"', 'null') || ']';
    ELSIF word = 'wait' THEN
        fault_of := CASE WHEN signal IS NULL THEN 'until' ELSE 'signal' END;
        fault := CASE WHEN signal IS NULL AND until IS NULL THEN 'is missing, and so is a signal: nothing could end the wait'
                      ELSE acta._name_fault(signal) END;
        outcome := 3;
        told := signal;
        instant := acta._ms(until);
        written := '["wait",' || coalesce(at_text, 'null') || ',' || coalesce(to_json(signal)::text, 'null') || ']';
    ELSIF word = 'snooze' THEN
        fault_of := 'until';
        fault := CASE WHEN until IS NULL THEN 'is missing' END;
        outcome := 4;
        instant := acta._ms(until);
        written := '["snooze",' || at_text || ']';
    ELSIF word = 'release' THEN
        outcome := 5;
        written := '["release"]';
    ELSIF word = 'cancelled' THEN
        outcome := 6;
        written := '["cancelled"]';
    ELSE
        fault_of := 'outcome';
        fault := 'is none of succeeded, failed, wait, snooze, release, cancelled';
    END IF;
    mark := acta._digest(written) >> 4;
END $$;

-- Settles one claim; what is refused is an error, so that nothing of the caller's transaction stays.
CREATE OR REPLACE FUNCTION acta._settle_single(
    queue text, id text, fence bigint, word text, output text, kind text, message text, code text, details text,
    retry_ms bigint, until timestamptz, signal text, OUT state text, OUT run_at timestamptz
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    o record := acta._outcome(word, output, kind, message, code, details, retry_ms, until, signal);
    a record;
BEGIN
    PERFORM acta._check_queue(queue);
    PERFORM acta._demand('id', id, acta._id_fault(id));
    PERFORM acta._demand('fence', NULL, CASE WHEN fence IS NULL THEN 'is missing; give the one that the claim handed out' END);
    PERFORM acta._demand(o.fault_of, CASE o.fault_of WHEN 'output' THEN output WHEN 'details' THEN details WHEN 'kind' THEN kind
                         WHEN 'signal' THEN signal WHEN 'until' THEN until::text WHEN 'retryAfter' THEN retry_ms || 'ms' END,
                         o.fault);
    SELECT s.* INTO a FROM acta._settle(queue, ARRAY[acta._row_of(id)], ARRAY[id], ARRAY[fence], NULL, ARRAY[o.outcome],
                                        ARRAY[o.mark], ARRAY[o.told], ARRAY[o.instant], NULL, NULL, NULL, NULL, false) s;
    IF a.fault = 'missing' THEN
        PERFORM acta._refuse('missing', format('there is no job %s in queue %s', id, queue), 'job', id);
    ELSIF a.fault = 'lost' THEN
        PERFORM acta._refuse('lost', format('lease lost: job %s is no longer held under fence %s; it is %s, claim %s by %L', id,
                                            fence, acta._state_word(a.state), a.fence, a.holder), 'job', id,
                             hint => 'somebody else has it, or it has ended: roll back, and claim something else');
    ELSIF a.fault IS NOT NULL THEN
        PERFORM acta._refuse('refused', format('job %s is %s: %s', id, acta._state_word(a.state), CASE a.fault
            WHEN 'never' THEN 'it was never claimed' ELSE 'this claim was settled already, with another outcome' END), 'job', id);
    END IF;
    state := acta._state_word(a.state);
    run_at := acta._instant(a.run_at);
END $$;

CREATE OR REPLACE FUNCTION acta.complete(queue text, id text, fence bigint, output json DEFAULT NULL,
                                         OUT state text, OUT run_at timestamptz)
LANGUAGE sql
SET search_path = acta, pg_temp AS $$
    SELECT s.state, s.run_at
    FROM _settle_single(queue, id, fence, 'succeeded', _json_text(output), NULL, NULL, NULL, NULL, NULL, NULL, NULL) s
$$;
COMMENT ON FUNCTION acta.complete(text, text, bigint, json)
IS 'The job is done. In the transaction that writes its results: both stay, or neither.';

CREATE OR REPLACE FUNCTION acta.fail(
    queue text, id text, fence bigint, message text, kind text DEFAULT 'system', code text DEFAULT NULL,
    details json DEFAULT NULL, retry_after interval DEFAULT NULL, OUT state text, OUT run_at timestamptz
)
LANGUAGE sql
SET search_path = acta, pg_temp AS $$
    SELECT s.state, s.run_at
    FROM _settle_single(queue, id, fence, 'failed', NULL, kind, message, code, _json_text(details), _interval_ms(retry_after),
                        NULL, NULL) s
$$;
COMMENT ON FUNCTION acta.fail(text, text, bigint, text, text, text, json, interval)
IS 'The job is not done. It comes again while it is retryable and attempts remain, and has failed otherwise.';

CREATE OR REPLACE FUNCTION acta.snooze(queue text, id text, fence bigint, until timestamptz,
                                       OUT state text, OUT run_at timestamptz)
LANGUAGE sql
SET search_path = acta, pg_temp AS $$
    SELECT s.state, s.run_at
    FROM _settle_single(queue, id, fence, 'snooze', NULL, NULL, NULL, NULL, NULL, NULL, until, NULL) s
$$;
COMMENT ON FUNCTION acta.snooze(text, text, bigint, timestamptz)
IS 'Puts the job off until an instant, and gives its attempt back.';

CREATE OR REPLACE FUNCTION acta.wait(queue text, id text, fence bigint, signal text DEFAULT NULL,
                                     until timestamptz DEFAULT NULL, OUT state text, OUT run_at timestamptz)
LANGUAGE sql
SET search_path = acta, pg_temp AS $$
    SELECT s.state, s.run_at
    FROM _settle_single(queue, id, fence, 'wait', NULL, NULL, NULL, NULL, NULL, NULL, until, signal) s
$$;
COMMENT ON FUNCTION acta.wait(text, text, bigint, text, timestamptz)
IS 'The job waits for a signal, a deadline, or whichever comes first, without a worker, and gets its attempt back.';

CREATE OR REPLACE FUNCTION acta.release(queue text, id text, fence bigint, OUT state text, OUT run_at timestamptz)
LANGUAGE sql
SET search_path = acta, pg_temp AS $$
    SELECT s.state, s.run_at
    FROM _settle_single(queue, id, fence, 'release', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) s
$$;
COMMENT ON FUNCTION acta.release(text, text, bigint)
IS 'Gives the job back unworked, with its attempt.';

CREATE OR REPLACE FUNCTION acta.cancelled(queue text, id text, fence bigint, OUT state text, OUT run_at timestamptz)
LANGUAGE sql
SET search_path = acta, pg_temp AS $$
    SELECT s.state, s.run_at
    FROM _settle_single(queue, id, fence, 'cancelled', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) s
$$;
COMMENT ON FUNCTION acta.cancelled(text, text, bigint)
IS 'The job was stopped because somebody had asked for it: see `cancel_requested` of acta.heartbeat.';

CREATE OR REPLACE FUNCTION acta.settle(queue text, settlements json)
RETURNS TABLE (id text, state text, run_at timestamptz, fault text)
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
#variable_conflict use_column
DECLARE
    told record := _members('settlements', settlements, 10000, '{"id": "text", "fence": "large", "outcome": "text",
        "output": "value", "kind": "text", "message": "text", "code": "text", "details": "value", "retryAfter": "span",
        "until": "instant", "signal": "text"}');
    a record;
    bad record;
BEGIN
    PERFORM _check_queue(queue);
    IF told.size = 0 THEN
        RETURN;
    END IF;
    WITH each AS (
        SELECT m.nth,
               max(m.val) FILTER (WHERE m.key = 'id') AS id, max(m.val) FILTER (WHERE m.key = 'fence')::bigint AS fence,
               max(m.val) FILTER (WHERE m.key = 'outcome') AS outcome, max(m.val) FILTER (WHERE m.key = 'output') AS output,
               max(m.val) FILTER (WHERE m.key = 'kind') AS kind, max(m.val) FILTER (WHERE m.key = 'message') AS message,
               max(m.val) FILTER (WHERE m.key = 'code') AS code, max(m.val) FILTER (WHERE m.key = 'details') AS details,
               _span_of(max(m.val) FILTER (WHERE m.key = 'retryAfter')) AS retry_ms,
               _instant_of(max(m.val) FILTER (WHERE m.key = 'until')) AS until,
               max(m.val) FILTER (WHERE m.key = 'signal') AS signal
        FROM unnest(told.nths, told.keys, told.vals) m (nth, key, val)
        GROUP BY m.nth
    ), judged AS (
        SELECT n.nth, e.id, e.fence, o.*,
               CASE WHEN _id_fault(e.id) IS NOT NULL THEN 'id ' || _id_fault(e.id)
                    WHEN e.fence IS NULL THEN 'fence is missing; give the one that the claim handed out'
                    WHEN o.fault IS NOT NULL THEN o.fault_of || ' ' || o.fault END AS why
        FROM generate_series(1, told.size) n (nth)
        LEFT JOIN each e ON e.nth = n.nth
        CROSS JOIN LATERAL _outcome(e.outcome, e.output, coalesce(e.kind, 'system'), e.message, e.code, e.details, e.retry_ms,
                                    e.until, e.signal) o
    )
    SELECT array_agg(j.id ORDER BY j.nth) AS ids, array_agg(j.fence ORDER BY j.nth) AS fences,
           array_agg(j.outcome ORDER BY j.nth) AS outcomes, array_agg(j.mark ORDER BY j.nth) AS marks,
           array_agg(j.told ORDER BY j.nth) AS tolds, array_agg(j.instant ORDER BY j.nth) AS instants,
           min(j.nth) FILTER (WHERE j.why IS NOT NULL) AS bad_at,
           (array_agg(j.why ORDER BY j.nth) FILTER (WHERE j.why IS NOT NULL))[1] AS why
    INTO a
    FROM judged j;
    IF a.why IS NOT NULL THEN
        PERFORM _refuse('invalid', format('settlements[%s].%s', a.bad_at - 1, a.why), 'settlement', at_index => a.bad_at - 1);
    END IF;
    RETURN QUERY
    SELECT a.ids[s.nth], _state_word(s.state), CASE WHEN s.fault IS NULL THEN _instant(s.run_at) END,
           CASE s.fault WHEN 'missing' THEN 'not-found' WHEN 'lost' THEN 'lease-lost' WHEN 'never' THEN 'refused'
                        WHEN 'other' THEN 'refused' ELSE s.fault END
    FROM ROWS FROM (_settle(queue, _rows_of(a.ids), a.ids, a.fences, NULL, a.outcomes, a.marks, a.tolds, a.instants, NULL,
                            NULL, NULL, NULL, false))
         WITH ORDINALITY s (fault, state, run_at, fence, holder, drew, nth);
END $$;
COMMENT ON FUNCTION acta.settle(text, json)
IS 'Settles many claims: each is judged by its own fence, the refused ones are named in `fault`, the others done.';

CREATE OR REPLACE FUNCTION acta.wake(queue text) RETURNS void
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
BEGIN
    PERFORM _check_queue(queue);
    PERFORM pg_notify('acta', queue);
END $$;
COMMENT ON FUNCTION acta.wake(text)
IS 'Tells workers, when the transaction has committed, that the queue has work. They look by themselves, too, only later.';

CREATE OR REPLACE FUNCTION acta.job(job_id text)
RETURNS TABLE (
    id text, queue text, state text, name text, lane text, priority integer, payload json, attempts integer,
    max_attempts integer, retryable boolean, fence bigint, lost_leases integer, claimed_by text, key text, dedup_key text,
    paused boolean, cancel_requested boolean, progress text, waits_for text, wait_until timestamptz, created_at timestamptz,
    run_at timestamptz, expires_at timestamptz, claimed_at timestamptz, started_at timestamptz, lease_expires_at timestamptz,
    finished_at timestamptz, output json, exception json
)
LANGUAGE plpgsql STABLE
SET search_path = acta, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at_row bigint;
BEGIN
    SELECT j.job INTO at_row FROM jobs j WHERE j.job = _row_of(job_id) AND j.id = job_id;
    IF at_row IS NULL THEN
        SELECT j.job INTO at_row FROM jobs j WHERE j.is_foreign AND j.id = job_id;
    END IF;
    RETURN QUERY
    SELECT w.id, n.path, _state_word(w.state), w.name, w.lane, w.priority::integer, w.payload::json, w.attempts,
           w.max_attempts, w.flags & 8 = 0, w.fence, w.lost_leases, w.claimed_by, w.key, w.dedup_key, w.flags & 1 <> 0,
           w.flags & 4 <> 0, w.progress, w.wait, _instant(w.wait_until), _instant(w.created_at), _instant(w.run_at),
           _instant(w.expires_at), _instant(w.claimed_at), _instant(w.started_at), _instant(w.lease_expires_at),
           _instant(w.finished_at), w.output::json, w.exception::json
    FROM whole w JOIN namespaces n ON n.ns = w.ns WHERE w.job = at_row;
END $$;
COMMENT ON FUNCTION acta.job(text)
IS 'One job, for people and programs; no row if there is none.';

CREATE OR REPLACE FUNCTION acta.grant_to(role name) RETURNS void
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
DECLARE
    owner oid := (SELECT n.nspowner FROM pg_catalog.pg_namespace n WHERE n.nspname = 'acta');
    entry name;
BEGIN
    -- Others would be told no more than that nothing was granted.
    IF NOT pg_has_role(owner, 'USAGE') THEN
        PERFORM _refuse('invalid', format('only the owner of the ledger, %s, grants its use', pg_get_userbyid(owner)),
                        'role', role::text);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA acta TO %I', role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA acta TO %I', role);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA acta TO %I', role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA acta TO %I', role);
    -- The schema's version, and whether the ledger takes writes, are the owner's.
    FOR entry IN SELECT c.relname FROM pg_catalog.pg_class c
                 WHERE c.relnamespace = 'acta'::regnamespace AND c.relkind = 'r' AND c.relname NOT IN ('migrations', 'ledger')
    LOOP
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON acta.%I TO %I', entry, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION acta.grant_to(name)
IS 'Lets a role use the ledger: everything but to change its schema, to open or to close it.';
