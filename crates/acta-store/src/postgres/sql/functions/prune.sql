-- Forgets jobs with all that is kept of them, but for their keys.
CREATE OR REPLACE FUNCTION acta._forget(of_jobs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM acta.standing s WHERE s.job = ANY (of_jobs);
    DELETE FROM acta.jobs j WHERE j.job = ANY (of_jobs);
    DELETE FROM acta.details d WHERE d.job = ANY (of_jobs);
    DELETE FROM acta.events e WHERE e.job = ANY (of_jobs);
    DELETE FROM acta.signals g WHERE g.job = ANY (of_jobs);
    DELETE FROM acta.steps t WHERE t.job = ANY (of_jobs);
    DELETE FROM acta.foreign_members m WHERE m.job = ANY (of_jobs);
END $$;

-- Removes jobs that ended long enough ago, and expired keys, at most so many of each; how many went. Never waits: what
-- somebody else has hold of goes another time.
CREATE OR REPLACE FUNCTION acta._prune(queue text, most bigint, now_ms bigint, OUT pruned integer, OUT freed integer)
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
DECLARE
    space acta.namespaces;
    found_jobs bigint[];
    held_keys text[];
BEGIN
    PERFORM acta._begin(true);
    space := acta._namespace(queue);
    IF space.ns IS NULL THEN
        PERFORM acta._refuse('missing', format('there is no queue %s', queue), 'queue', queue);
    END IF;
    now_ms := acta._now(now_ms);
    found_jobs := ARRAY(SELECT s.job FROM acta.standing s WHERE s.ns = space.ns AND s.prune_at <= now_ms
                        ORDER BY s.prune_at, s.job LIMIT most);
    -- Keys before rows.
    held_keys := ARRAY(SELECT k.key FROM acta.keys k WHERE k.ns = space.ns AND k.key = ANY (
                           SELECT j.dedup_key FROM acta.jobs j WHERE j.job = ANY (found_jobs) AND j.dedup_key IS NOT NULL)
                       ORDER BY k.key FOR UPDATE SKIP LOCKED);
    found_jobs := ARRAY(
        SELECT s.job FROM acta.standing s JOIN acta.jobs j ON j.job = s.job
        WHERE s.job = ANY (found_jobs) AND s.prune_at <= now_ms
          AND (j.dedup_key IS NULL OR j.dedup_key = ANY (held_keys)
               OR NOT EXISTS (SELECT 1 FROM acta.keys k WHERE k.ns = space.ns AND k.key = j.dedup_key))
        ORDER BY s.job
        FOR UPDATE OF s SKIP LOCKED);
    pruned := cardinality(found_jobs);
    IF pruned > 0 THEN
        UPDATE acta.keys k
        SET state = s.state, expires_at = least(s.finished_at + 7776000000, 253402128000000), job = NULL
        FROM acta.jobs j JOIN acta.standing s ON s.job = j.job
        WHERE j.job = ANY (found_jobs) AND k.ns = space.ns AND k.key = j.dedup_key AND k.id = j.id;
        INSERT INTO acta.changes (ns, at, amounts)
        SELECT space.ns, now_ms, array_agg(n.gone ORDER BY c.counter)
        FROM generate_series(0, 23) c (counter)
        CROSS JOIN LATERAL (SELECT -count(*)::integer AS gone FROM acta.standing s
                            WHERE s.job = ANY (found_jobs)
                              AND s.state + CASE WHEN s.flags & 16 <> 0 AND s.state = 7 THEN 16 ELSE 0 END = c.counter) n;
        PERFORM acta._forget(found_jobs);
    END IF;
    DELETE FROM acta.keys k WHERE k.ctid = ANY (ARRAY(
        SELECT e.ctid FROM acta.keys e WHERE e.ns = space.ns AND e.expires_at <= now_ms
        ORDER BY e.expires_at, e.key LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS freed = ROW_COUNT;
    PERFORM acta._forget_vitals(space.ns, most, now_ms);
END $$;
