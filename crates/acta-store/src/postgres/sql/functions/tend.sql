-- What peers do now and then, each as it comes by; nobody leads, and nobody waits.

-- Folds the changes of the counts into the counts, and what they say has happened into its minute; how many rows of changes there
-- were.
CREATE OR REPLACE FUNCTION acta._fold(most integer, now_ms bigint) RETURNS integer
LANGUAGE plpgsql
SET search_path = acta, pg_temp AS $$
DECLARE
    folded integer;
BEGIN
    -- One at a time, and nobody waits for it.
    IF NOT pg_try_advisory_xact_lock(1633907809, 3) THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM acta.changes c
        WHERE c.ctid = ANY (ARRAY(SELECT o.ctid FROM acta.changes o LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING c.ns, c.at, c.amounts
    ), each AS (
        SELECT g.ns, (a.nth - 1)::smallint AS counter, a.amount
        FROM gone g CROSS JOIN LATERAL unnest(g.amounts) WITH ORDINALITY a (amount, nth) WHERE a.amount <> 0
    ), counted AS (
        INSERT INTO acta.counts AS k (ns, counter, value)
        SELECT e.ns, e.counter, sum(e.amount) FROM each e GROUP BY e.ns, e.counter ORDER BY 1, 2
        ON CONFLICT (ns, counter) DO UPDATE SET value = k.value + excluded.value
    ), flowed AS (
        INSERT INTO acta.minutes AS m (ns, minute, added, claimed, succeeded, failed, cancelled)
        SELECT g.ns, g.at / 60000, sum(f.added), sum(f.claimed), sum(f.succeeded), sum(f.failed), sum(f.cancelled)
        FROM gone g CROSS JOIN LATERAL acta._flow(g.amounts) f
        -- What came with a copy has no instant.
        WHERE g.at / 60000 >= acta._first_minute(now_ms)
        GROUP BY g.ns, g.at / 60000
        HAVING sum(f.added + f.claimed + f.succeeded + f.failed + f.cancelled) > 0
        ORDER BY 1, 2
        ON CONFLICT (ns, minute) DO UPDATE
        SET added = m.added + excluded.added, claimed = m.claimed + excluded.claimed, succeeded = m.succeeded + excluded.succeeded,
            failed = m.failed + excluded.failed, cancelled = m.cancelled + excluded.cancelled
    )
    SELECT count(*) INTO folded FROM gone;
    RETURN folded;
END $$;

-- Moves the floors of the claim scan up: to the first job that is ready since its enqueue, but never past a number that an enqueue
-- may hold whose jobs can't be seen yet. Those of other people's transactions are never above a floor: see `own`.
CREATE OR REPLACE FUNCTION acta._raise_floors(now_ms bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
DECLARE
    last_given bigint;
    runs text[];
    before acta.tide;
    bound bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(1633907809, 4) THEN
        RETURN;
    END IF;
    -- In this order: who has drawn one of these numbers had taken its lock before, and is in the list unless it has ended.
    SELECT CASE WHEN n.is_called THEN n.last_value ELSE 0 END INTO last_given FROM acta.numbers n;
    runs := ARRAY(
        SELECT l.virtualtransaction FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.classid = 1633907809 AND l.objid = 1 AND l.objsubid = 2
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
    SELECT * INTO before FROM acta.tide;
    IF runs = '{}' THEN
        bound := last_given;
    ELSIF NOT before.running && runs THEN
        bound := before.number;
    END IF;
    IF bound IS NULL THEN
        RETURN;
    END IF;
    UPDATE acta.tide SET number = last_given, running = runs;
    UPDATE acta.lines l SET floor = f.floor
    FROM (SELECT o.ns, o.priority, least(bound + 1, coalesce((
              SELECT s.place FROM acta.standing s
              WHERE s.ns = o.ns AND s.priority = o.priority AND s.state = 1 AND s.flags & 259 = 256 AND s.place >= o.floor
              ORDER BY s.place LIMIT 1), bound + 1)) AS floor
          FROM acta.lines o) f
    WHERE l.ns = f.ns AND l.priority = f.priority AND l.floor < f.floor;
    -- The same for what is due: nothing that is due is below. An expiry that was past when its job was enqueued in somebody's own
    -- transaction may be, and is found by whoever looks at all (`_bring_in`).
    UPDATE acta.namespaces n SET due_from = f.due_from
    FROM (SELECT o.ns, least(now_ms - 60000, coalesce((
              SELECT s.due_at FROM acta.standing s WHERE s.ns = o.ns AND s.due_at >= o.due_from
              ORDER BY s.due_at LIMIT 1), now_ms)) AS due_from
          FROM acta.namespaces o) f
    WHERE n.ns = f.ns AND n.due_from < f.due_from - 10000;
END $$;

-- Both of these.
CREATE OR REPLACE FUNCTION acta._tend(now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    now_ms := acta._now(now_ms);
    PERFORM acta._raise_floors(now_ms);
    PERFORM acta._fold(10000, now_ms);
END $$;
