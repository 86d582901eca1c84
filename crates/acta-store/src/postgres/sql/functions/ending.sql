-- What ends jobs and lets lanes go on.

-- Lets lanes go on whose head has just ended, or that have lost another member; their rows are held by the caller.
CREATE OR REPLACE FUNCTION acta._leave_lanes(of_ns integer, left_lanes bigint[], now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    ready integer;
    scheduled integer;
BEGIN
    UPDATE acta.lanes l SET live = l.live - n.gone
    FROM (SELECT x.lane, count(*) AS gone FROM unnest(left_lanes) x (lane) GROUP BY x.lane) n
    WHERE l.lane = n.lane;
    WITH next AS (
        SELECT n.job, l.paused
        FROM acta.lanes l
        CROSS JOIN LATERAL (SELECT s.job FROM acta.standing s WHERE s.lane = l.lane AND s.state = 0 ORDER BY s.place LIMIT 1) n
        WHERE l.lane = ANY (left_lanes) AND NOT EXISTS (SELECT 1 FROM acta.standing h WHERE h.lane = l.lane AND h.state BETWEEN 1 AND 5)
    ), promoted AS (
        UPDATE acta.standing s
        SET state = CASE WHEN s.run_at > now_ms THEN 2 ELSE 1 END,
            due_at = least(CASE WHEN s.run_at > now_ms THEN s.run_at END, CASE WHEN s.fence = 0 THEN s.expires_at END),
            flags = s.flags | CASE WHEN n.paused THEN 2 ELSE 0 END
        FROM next n
        WHERE s.job = n.job
        RETURNING s.state
    )
    SELECT count(*) FILTER (WHERE p.state = 1), count(*) FILTER (WHERE p.state = 2) INTO ready, scheduled FROM promoted p;
    IF ready + scheduled > 0 THEN
        PERFORM acta._count(of_ns, now_ms, 0, -(ready + scheduled), 1, ready, 2, scheduled);
    END IF;
    DELETE FROM acta.lanes l WHERE l.lane = ANY (left_lanes) AND l.live = 0 AND NOT l.paused;
END $$;

-- The same for lanes, each named once, whose heads have been ended by their holders: by all of them, where `each_one` says so.
-- Whether one has a candidate now.
CREATE OR REPLACE FUNCTION acta._advance(of_ns integer, left_lanes bigint[], each_one boolean, now_ms bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    ready integer;
    scheduled integer;
    has_empty boolean;
BEGIN
    IF NOT each_one THEN
        -- Of a lane that the caller holds and that has members but no head, it has just ended the head.
        left_lanes := ARRAY(
            SELECT l.lane FROM acta.lanes l
            WHERE l.lane = ANY (left_lanes) AND l.live > 0 AND NOT EXISTS (SELECT 1 FROM acta.standing h WHERE h.lane = l.lane AND h.state BETWEEN 1 AND 5));
    END IF;
    WITH gone AS (
        UPDATE acta.lanes l SET live = l.live - 1 WHERE l.lane = ANY (left_lanes) RETURNING l.lane, l.live, l.paused
    ), promoted AS (
        UPDATE acta.standing s
        SET state = CASE WHEN s.run_at > now_ms THEN 2 ELSE 1 END,
            due_at = least(CASE WHEN s.run_at > now_ms THEN s.run_at END, CASE WHEN s.fence = 0 THEN s.expires_at END),
            flags = s.flags | CASE WHEN n.paused THEN 2 ELSE 0 END
        FROM (SELECT g.paused, (SELECT o.job FROM acta.standing o WHERE o.lane = g.lane AND o.state = 0
                                ORDER BY o.place LIMIT 1) AS job
              FROM gone g WHERE g.live > 0) n
        WHERE s.job = n.job
        RETURNING s.state
    )
    SELECT count(*) FILTER (WHERE p.state = 1), count(*) FILTER (WHERE p.state = 2),
           EXISTS (SELECT 1 FROM gone g WHERE g.live = 0)
    INTO ready, scheduled, has_empty FROM promoted p;
    IF ready + scheduled > 0 THEN
        INSERT INTO acta.changes (ns, at, amounts) VALUES (of_ns, now_ms, ARRAY[-(ready + scheduled), ready, scheduled]);
    END IF;
    IF has_empty THEN
        DELETE FROM acta.lanes l WHERE l.lane = ANY (left_lanes) AND l.live = 0 AND NOT l.paused;
    END IF;
    RETURN ready > 0;
END $$;

-- Keeps the exception of a job; whether it has details is for the caller to keep.
CREATE OR REPLACE FUNCTION acta._keep_exception(of_job bigint, told text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO acta.details AS d (job, exception) VALUES (of_job, told)
    ON CONFLICT (job) DO UPDATE SET exception = excluded.exception;
END $$;

CREATE OR REPLACE FUNCTION acta._note(of_ns integer, of_job bigint, now_ms bigint, what text, under bigint DEFAULT NULL,
                                      who text DEFAULT NULL, again_at bigint DEFAULT NULL, told text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO acta.events (ns, job, at, kind, fence, actor, run_at, exception)
    VALUES (of_ns, of_job, now_ms, what, under, who, again_at, told);
END $$;

-- Frees the key of a job that holds it only while it is live.
CREATE OR REPLACE FUNCTION acta._free_keys(of_ns integer, of_jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM acta.keys k USING acta.jobs j
    WHERE j.job = ANY (of_jobs) AND k.ns = of_ns AND k.key = j.dedup_key AND k.id = j.id;
END $$;

-- Ends a job that nobody has settled: `to_state` is 7 or 8. The caller holds its row, its lane's and its key's.
CREATE OR REPLACE FUNCTION acta._end(s acta.standing, to_state integer, lost boolean, told text, now_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    kept_ms bigint;
BEGIN
    PERFORM acta._keep_exception(s.job, told);
    SELECT coalesce(s.retention_ms, n.retention_ms, 2592000000) INTO kept_ms FROM acta.namespaces n WHERE n.ns = s.ns;
    UPDATE acta.standing t
    SET state = to_state, lease_expires_at = NULL, due_at = NULL, finished_at = now_ms, prune_at = least(now_ms + kept_ms, 253402128000000),
        lane = NULL, arriving = NULL, lost_leases = t.lost_leases + CASE WHEN lost THEN 1 ELSE 0 END,
        -- Not paused, lane paused, cancel requested, business or fresh any more; but with details.
        flags = t.flags & ~(1 | 2 | 4 | 16 | 256) | 32
    WHERE t.job = s.job;
    PERFORM acta._count(s.ns, now_ms, s.state, -1, to_state, 1);
    IF s.flags & 128 <> 0 THEN
        PERFORM acta._free_keys(s.ns, ARRAY[s.job]);
    END IF;
    IF s.lane IS NOT NULL THEN
        PERFORM acta._leave_lanes(s.ns, ARRAY[s.lane], now_ms);
    END IF;
END $$;

-- Whether everything that an end of this job touches could be taken hold of without waiting.
CREATE OR REPLACE FUNCTION acta._may_end(s acta.standing) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF s.flags & 128 <> 0 THEN
        PERFORM 1 FROM acta.keys k JOIN acta.jobs j ON j.job = s.job AND k.ns = s.ns AND k.key = j.dedup_key
        FOR UPDATE OF k SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT 1 FROM acta.keys k JOIN acta.jobs j ON j.job = s.job AND k.ns = s.ns
                                 AND k.key = j.dedup_key) THEN
            RETURN false;
        END IF;
    END IF;
    IF s.lane IS NULL THEN
        RETURN true;
    END IF;
    PERFORM 1 FROM acta.lanes l WHERE l.lane = s.lane FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF s.state = 0 OR NOT EXISTS (SELECT 1 FROM acta.standing n WHERE n.lane = s.lane AND n.state = 0) THEN
        RETURN true;
    END IF;
    PERFORM 1 FROM acta.standing n
    WHERE n.job = (SELECT f.job FROM acta.standing f WHERE f.lane = s.lane AND f.state = 0 ORDER BY f.place LIMIT 1)
    FOR UPDATE SKIP LOCKED;
    RETURN FOUND;
END $$;

-- Keeps what a wait came to as the job's next `wait:<n>` step.
CREATE OR REPLACE FUNCTION acta._keep_wait(of_job bigint, signal_name text, came text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO acta.steps (job, name, value)
    SELECT of_job, 'wait:' || (SELECT count(*) + 1 FROM acta.steps t WHERE t.job = of_job AND t.name LIKE 'wait:%'),
           '{"signal":"' || signal_name || '",' || coalesce('"payload":' || came, '"timedOut":true') || '}';
END $$;
