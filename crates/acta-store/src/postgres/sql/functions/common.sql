-- What several functions share. Names that begin with an underscore are for the others, and may change with any release.

-- The instant that an operation counts as its own, in milliseconds: the database's, unless one is handed in.
CREATE OR REPLACE FUNCTION acta._now(given bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(given, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

-- An instant as people and drivers know it.
CREATE OR REPLACE FUNCTION acta._instant(ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$ SELECT timestamptz 'epoch' + ms * interval '1 millisecond' $$;

CREATE OR REPLACE FUNCTION acta._ms(instant timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT floor(extract(epoch FROM instant) * 1000)::bigint $$;

-- Refuses a call. Programs read the state and the detail, people the message.
CREATE OR REPLACE FUNCTION acta._refuse(code text, message text, what text DEFAULT NULL, given text DEFAULT NULL,
                                        existing text DEFAULT NULL, at_index integer DEFAULT NULL, hint text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = CASE code WHEN 'missing' THEN 'ACTA2' WHEN 'lost' THEN 'ACTA3' WHEN 'refused' THEN 'ACTA4'
                            WHEN 'closed' THEN 'ACTA5' WHEN 'isolation' THEN 'ACTA6' ELSE 'ACTA1' END,
        MESSAGE = message,
        DETAIL = json_strip_nulls(json_build_object('code', code, 'what', what, 'given', given, 'existing', existing,
                                                    'index', at_index))::text,
        HINT = coalesce(hint, '');
END $$;

-- Every write begins with this. The lock is shared among writes; a copy takes it for itself, and floors are moved by who
-- holds it: `own` says that the caller ends its transaction at once. It answers so that a caller can assign it, which costs less
-- than a statement.
CREATE OR REPLACE FUNCTION acta._begin(own boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    told text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM acta._refuse('isolation', format('the ledger works in READ COMMITTED transactions only, this one is %s',
                             upper(current_setting('transaction_isolation'))),
                             hint => 'BEGIN ISOLATION LEVEL READ COMMITTED; what is read after a wait must be new');
    END IF;
    told := pg_advisory_xact_lock_shared(1633907809, CASE WHEN own THEN 1 ELSE 2 END);
    SELECT openness INTO told FROM acta.ledger WHERE NOT is_open;
    IF FOUND THEN
        PERFORM acta._refuse('closed', 'the ledger takes no writes: ' || told, 'openness', told);
    END IF;
    RETURN true;
END $$;

-- What a namespace's family says where nobody else does (acta-core: Family).
CREATE OR REPLACE FUNCTION acta._family(path text, OUT queue text, OUT max_attempts integer, OUT lease_ms bigint,
                                        OUT has_priority boolean, OUT business_is_final boolean)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    queue := regexp_replace(path, '^(queues|transactions)/', '');
    max_attempts := CASE WHEN path LIKE 'queues/%' THEN 1 WHEN path LIKE 'transactions/%' THEN 3 ELSE 15 END;
    lease_ms := acta._lease_of(path);
    has_priority := path NOT LIKE 'queues/%' AND path NOT LIKE 'transactions/%';
    business_is_final := path NOT LIKE 'queues/%';
END $$;

CREATE OR REPLACE FUNCTION acta._lease_of(path text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN path LIKE 'queues/%' THEN 600000 WHEN path LIKE 'transactions/%' THEN 300000 ELSE 180000 END::bigint
$$;

-- Refuses what can't be the path of a queue.
CREATE OR REPLACE FUNCTION acta._check_queue(wanted text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF wanted IS NULL OR wanted !~ '^((queues|transactions)/)?[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' THEN
        PERFORM acta._refuse('invalid', format('queue %L is not 1 to 100 letters, digits, dots, underscores or hyphens, '
            'the first a letter or digit, with "queues/" or "transactions/" in front or nothing', left(wanted, 200)),
            'queue', left(wanted, 200));
    END IF;
END $$;

-- The namespace of this path; null if there is none.
CREATE OR REPLACE FUNCTION acta._namespace(wanted text) RETURNS acta.namespaces
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_one acta.namespaces;
BEGIN
    SELECT * INTO found_one FROM acta.namespaces n WHERE lower(n.path) = lower(wanted);
    IF found_one.path <> wanted THEN
        PERFORM acta._refuse('case', format('queue %I differs from the existing %I only by case', wanted, found_one.path),
                             'queue', wanted, found_one.path);
    END IF;
    RETURN found_one;
END $$;

-- The same, made if it is not there.
CREATE OR REPLACE FUNCTION acta._ensure_namespace(wanted text) RETURNS acta.namespaces
LANGUAGE plpgsql AS $$
DECLARE
    found_one acta.namespaces := acta._namespace(wanted);
BEGIN
    IF found_one.ns IS NULL THEN
        PERFORM acta._check_queue(wanted);
        INSERT INTO acta.namespaces (path) VALUES (wanted) ON CONFLICT DO NOTHING;
        found_one := acta._namespace(wanted);
    END IF;
    RETURN found_one;
END $$;

-- Adds to the counts of a namespace: `amounts` holds pairs of a counter and how many more.
CREATE OR REPLACE FUNCTION acta._count(of_ns integer, now_ms bigint, VARIADIC pairs integer[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    added integer[] := '{0,0,0,0,0,0,0,0,0}';
BEGIN
    FOR i IN 1 .. array_length(pairs, 1) / 2 LOOP
        -- Counters end at 25, where business failures are.
        IF pairs[2 * i - 1] > 8 AND array_length(added, 1) < 25 THEN
            added := added || '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}'::integer[];
        END IF;
        added[pairs[2 * i - 1] + 1] := added[pairs[2 * i - 1] + 1] + pairs[2 * i];
    END LOOP;
    INSERT INTO acta.changes (ns, at, amounts) VALUES (of_ns, now_ms, added);
END $$;

-- A number in lower-case base 36.
CREATE OR REPLACE FUNCTION acta._base36(number bigint) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    digits text := '';
BEGIN
    LOOP
        digits := substr('0123456789abcdefghijklmnopqrstuvwxyz', (number % 36)::integer + 1, 1) || digits;
        number := number / 36;
        EXIT WHEN number = 0;
    END LOOP;
    RETURN digits;
END $$;

-- The row number that an id of the ledger's own making carries; compare the whole id.
CREATE OR REPLACE FUNCTION acta._row_of(id text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    rest text := substring(id FROM '-([0-9a-z]{5,17})$');
    number numeric := 0;
    short bigint := 0;
BEGIN
    IF rest IS NULL THEN
        RETURN NULL;
    END IF;
    IF length(rest) <= 16 THEN
        FOR i IN 5 .. length(rest) LOOP
            short := short * 36 + strpos('0123456789abcdefghijklmnopqrstuvwxyz', substr(rest, i, 1)) - 1;
        END LOOP;
        RETURN short;
    END IF;
    FOR i IN 5 .. length(rest) LOOP
        number := number * 36 + strpos('0123456789abcdefghijklmnopqrstuvwxyz', substr(rest, i, 1)) - 1;
    END LOOP;
    RETURN CASE WHEN number < 9223372036854775808 THEN number::bigint END;
END $$;

-- Eight bytes of the SHA-256 of a text, as every substrate computes it.
CREATE OR REPLACE FUNCTION acta._digest(given text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT ('x' || encode(substr(sha256(convert_to(given, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
