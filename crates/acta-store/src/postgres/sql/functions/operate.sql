-- Takes hold of everything that an operator's act on these jobs may touch, in the order of all calls: keys, lanes, rows. What
-- has arrived in their lanes joins them first. `makes` says that jobs may be put into lanes and take keys again.
CREATE OR REPLACE FUNCTION acta._hold_jobs(queue text, rows bigint[], ids text[], makes boolean, now_ms bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
DECLARE
    space acta.namespaces;
    found_jobs bigint[];
    found_keys text[];
    found_lanes text[];
    arrived text[];
BEGIN
    PERFORM acta._begin(true);
    space := acta._namespace(queue);
    SELECT array_agg(j.job), array_agg(DISTINCT j.dedup_key) FILTER (WHERE j.dedup_key IS NOT NULL),
           array_agg(DISTINCT j.lane) FILTER (WHERE j.lane IS NOT NULL)
    INTO found_jobs, found_keys, found_lanes
    FROM (SELECT o.* FROM acta.jobs o WHERE o.job = ANY (rows) AND o.ns = space.ns
          UNION
          SELECT o.* FROM acta.jobs o WHERE o.is_foreign AND o.id = ANY (ids) AND o.ns = space.ns) j;
    IF found_keys IS NOT NULL AND makes THEN
        INSERT INTO acta.keys AS k (ns, key, id, digest, state)
        SELECT space.ns, d, '', 0, 0 FROM unnest(found_keys) d ORDER BY d
        ON CONFLICT (ns, key) DO UPDATE SET digest = k.digest;
    ELSIF found_keys IS NOT NULL THEN
        PERFORM 1 FROM acta.keys k WHERE k.ns = space.ns AND k.key = ANY (found_keys) ORDER BY k.key FOR UPDATE;
    END IF;
    IF found_lanes IS NOT NULL THEN
        SELECT array_agg(DISTINCT s.arriving) INTO arrived FROM acta.standing s
        WHERE s.ns = space.ns AND s.arriving = ANY (found_lanes);
        IF makes OR arrived IS NOT NULL THEN
            PERFORM acta._hold_lanes(space.ns, found_lanes);
        ELSE
            PERFORM 1 FROM acta.lanes l WHERE l.ns = space.ns AND l.name = ANY (found_lanes) ORDER BY l.name FOR UPDATE;
        END IF;
        IF arrived IS NOT NULL THEN
            PERFORM acta._admit_into(space.ns, arrived, acta._now(now_ms));
        END IF;
    END IF;
    PERFORM 1 FROM acta.standing s WHERE s.job = ANY (found_jobs) ORDER BY s.job FOR UPDATE;
END $$;

-- Takes away keys and lanes of these jobs that were made to be held, and then not used.
CREATE OR REPLACE FUNCTION acta._let_go(queue text, rows bigint[], ids text[]) RETURNS void
LANGUAGE plpgsql
SET search_path = acta, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off AS $$
DECLARE
    space acta.namespaces := acta._namespace(queue);
BEGIN
    DELETE FROM acta.keys k USING acta.jobs j
    WHERE (j.job = ANY (rows) OR (j.is_foreign AND j.id = ANY (ids))) AND k.ns = space.ns AND k.key = j.dedup_key AND k.id = '';
    DELETE FROM acta.lanes l USING acta.jobs j
    WHERE (j.job = ANY (rows) OR (j.is_foreign AND j.id = ANY (ids))) AND l.ns = space.ns AND l.name = j.lane
      AND l.live = 0 AND NOT l.paused;
END $$;
