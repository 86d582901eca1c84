-- Settles a wave and claims, in one transaction. The first row holds the answers to the wave, as `_settle` gives them, side by
-- side; the others the jobs.
CREATE OR REPLACE FUNCTION acta._exchange(
    queue text, rows bigint[], ids text[], fences bigint[], robots text[], outcomes smallint[], marks bigint[],
    told text[], instants bigint[], words bigint[], robot text, most integer, lease bigint, names text[], now_ms bigint
) RETURNS TABLE (
    faults text[], states smallint[], run_ats bigint[], fences_now bigint[], holders text[], drew boolean[],
    job bigint, state smallint, place bigint, priority smallint, lane_number bigint, flags smallint, attempts integer,
    max_attempts integer, fence bigint, lost_leases integer, run_at bigint, expires_at bigint, wait_until bigint,
    lease_expires_at bigint, claimed_by text, claimed_at bigint, finished_at bigint, retention_ms bigint, prune_at bigint,
    settled bigint, settled_run_at bigint, id text, name text, lane text, key text, dedup_key text, payload text,
    created_at bigint, backoff text, lease_ms bigint, wait text, progress text, started_at bigint, output text,
    exception text, ns integer
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(a.fault), array_agg(a.state), array_agg(a.run_at), array_agg(a.fence), array_agg(a.holder),
           array_agg(a.drew)
    INTO faults, states, run_ats, fences_now, holders, drew
    FROM acta._settle(queue, rows, ids, fences, robots, outcomes, marks, told, instants, words, now_ms, true) a;
    RETURN NEXT;
    RETURN QUERY
    SELECT NULL::text[], NULL::smallint[], NULL::bigint[], NULL::bigint[], NULL::text[], NULL::boolean[], c.*
    FROM acta._claim(queue, robot, most, lease, names, false, now_ms) c;
END $$;
