-- Who works, and how much happens: beside the jobs, and no part of them.

-- What a row of changes says has happened (acta-core: Flow). That it can be told from the sums of a row is so because no write
-- does two of these things in one row that would cancel each other out: only an enqueue makes jobs, only a claim makes more of them
-- claimed, and no row ends some jobs and brings others back from the same end.
CREATE OR REPLACE FUNCTION acta._flow(amounts integer[], OUT added bigint, OUT claimed bigint, OUT succeeded bigint,
                                      OUT failed bigint, OUT cancelled bigint)
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest((SELECT sum(a) FROM unnest(amounts) a), 0), greatest(amounts[4], 0)::bigint, greatest(amounts[7], 0)::bigint,
           greatest(amounts[8], 0)::bigint + greatest(amounts[24], 0), greatest(amounts[9], 0)::bigint
$$;

-- Extends leases as `_heartbeat` does, behind taking note of the worker that they are from. `worker` is what it says about itself,
-- or `{"gone": <id>}` where it has ended.
CREATE OR REPLACE FUNCTION acta._heartbeat_of(
    worker json, queue text, rows bigint[], ids text[], fences bigint[], robots text[], lease bigint, now_ms bigint
) RETURNS TABLE (fault text, state smallint, fence bigint, holder text, lease_expires_at bigint, cancel_requested boolean)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    space acta.namespaces;
    seen bigint;
BEGIN
    PERFORM acta._begin(true);
    space := acta._namespace(queue);
    IF space.ns IS NULL THEN
        PERFORM acta._refuse('missing', format('there is no queue %s', queue), 'queue', queue);
    END IF;
    seen := acta._now(now_ms);
    IF worker ->> 'gone' IS NOT NULL THEN
        DELETE FROM acta.workers w WHERE w.ns = space.ns AND w.id = worker ->> 'gone';
    ELSE
        INSERT INTO acta.workers AS w (ns, id, robot, host, pid, version, concurrency, running, started_at, seen_at)
        VALUES (space.ns, worker ->> 'id', worker ->> 'robot', worker ->> 'host', (worker ->> 'pid')::bigint,
                worker ->> 'version', (worker ->> 'concurrency')::bigint, (worker ->> 'running')::bigint, seen, seen)
        ON CONFLICT (ns, id) DO UPDATE
        SET robot = excluded.robot, host = excluded.host, pid = excluded.pid, version = excluded.version,
            concurrency = excluded.concurrency, running = excluded.running, seen_at = excluded.seen_at;
    END IF;
    RETURN QUERY SELECT * FROM acta._heartbeat(queue, rows, ids, fences, robots, lease, now_ms);
END $$;

-- Forgets minutes and workers of more than a day ago, at most so many of each, without waiting.
CREATE OR REPLACE FUNCTION acta._forget_vitals(of_ns integer, most bigint, now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM acta.minutes m WHERE m.ctid = ANY (ARRAY(
        SELECT o.ctid FROM acta.minutes o WHERE o.ns = of_ns AND o.minute < acta._first_minute(now_ms)
        ORDER BY o.minute LIMIT most FOR UPDATE SKIP LOCKED));
    DELETE FROM acta.workers w WHERE w.ctid = ANY (ARRAY(
        SELECT o.ctid FROM acta.workers o WHERE o.ns = of_ns AND o.seen_at < now_ms - 86400000
        ORDER BY o.id LIMIT most FOR UPDATE SKIP LOCKED));
END $$;

-- The first minute that is kept: of a day, the present one among them.
CREATE OR REPLACE FUNCTION acta._first_minute(now_ms bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT now_ms / 60000 - 1439 $$;
