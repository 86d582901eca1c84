-- What callers in SQL hand in, judged in one place and by the same limits as everywhere else (acta-core: name, json, policy).
--
-- A `_…_fault` says what is wrong with a value; null if nothing is. Those are single expressions of immutable parts, which
-- PostgreSQL takes into the statement that uses them: a call for a thousand jobs is one pass over them.

CREATE OR REPLACE FUNCTION acta._name_fault(given text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN given !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'
        THEN 'is not 1 to 100 letters, digits, dots, underscores or hyphens, the first a letter or digit' END
$$;

CREATE OR REPLACE FUNCTION acta._label_fault(given text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(given) NOT BETWEEN 1 AND 512
                THEN 'has ' || octet_length(given)::text || ' bytes; 1 to 512 are allowed'
                WHEN given ~ '[\u0001-\u001F\u007F-\u009F]' THEN 'contains a control character' END
$$;

CREATE OR REPLACE FUNCTION acta._id_fault(given text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN given IS NULL OR given !~ '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$'
        THEN 'is not 1 to 200 letters, digits, dots, underscores or hyphens, the first not a dot' END
$$;

-- Whether a JSON text is nested deeper than 128. Few have so many brackets that it has to be looked at closely.
CREATE OR REPLACE FUNCTION acta._is_deep(given text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    brackets text := regexp_replace(regexp_replace(given, '"(\\.|[^"\\])*"', '', 'g'), '[^][{}]', '', 'g');
BEGIN
    FOR i IN 1 .. 128 LOOP
        brackets := regexp_replace(brackets, '\[\]|\{\}', '', 'g');
        IF brackets = '' THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION acta._json_fault(given text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(given) > 1048576
                THEN 'has ' || octet_length(given)::text || ' bytes, more than the 1048576 allowed'
                WHEN length(given) - length(translate(given, '[{', '')) > 128 AND acta._is_deep(given)
                THEN 'is nested deeper than 128' END
$$;

-- The text of a JSON value; white space around it is not part of it.
CREATE OR REPLACE FUNCTION acta._json_text(given json) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT btrim(given::text, E' \t\n\r') $$;

CREATE OR REPLACE FUNCTION acta._instant_fault(given timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN given < timestamptz '1970-01-01 00:00:00Z' OR given > timestamptz '9999-12-30 00:00:00Z'
        THEN 'is outside 1970 to 9999' END
$$;

-- The instant that a text in RFC 3339 names; null if it names none. Without a zone it would be another one elsewhere.
CREATE OR REPLACE FUNCTION acta._instant_of(written text) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF written ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)$' THEN
        RETURN written::timestamptz;
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

-- A length of time as it is written, in milliseconds; null if it is none, or longer than 1,000 years.
CREATE OR REPLACE FUNCTION acta._span_of(written text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN written ~ '^[0-9]{1,19}(ms|s|m|h|d)$' THEN
        (SELECT CASE WHEN ms <= 31536000000000 THEN ms::bigint END
         FROM (SELECT substring(written FROM '^[0-9]+')::numeric
                      * acta._span('1' || substring(written FROM '[a-z]+$')) AS ms) m) END
$$;

CREATE OR REPLACE FUNCTION acta._interval_ms(given interval) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    -- Without the condition nothing would be the longest time of all: least() passes over nulls.
    SELECT CASE WHEN given IS NOT NULL
        THEN greatest(-1, least(31536000000000, floor(extract(epoch FROM given) * 1000)))::bigint END
$$;

-- What is wrong with a back-off: "none", or two lengths of time.
CREATE OR REPLACE FUNCTION acta._backoff_fault(given text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    told json := given;
    known constant text := 'is neither "none" nor an object like {"initial": "1s", "max": "5m"}';
BEGIN
    IF json_typeof(told) = 'string' AND told #>> '{}' = 'none' THEN
        RETURN NULL;
    END IF;
    IF json_typeof(told) <> 'object' OR (SELECT array_agg(k ORDER BY k) FROM json_object_keys(told) k) <> '{initial,max}'
       OR (SELECT bool_or(json_typeof(e.value) <> 'string' OR acta._span_of(e.value #>> '{}') IS NULL)
           FROM json_each(told) e) IS DISTINCT FROM false THEN
        RETURN known;
    END IF;
    RETURN NULL;
END $$;

-- What is wrong with the trace that a job is to belong to (acta-core: Traceparent).
CREATE OR REPLACE FUNCTION acta._traceparent_fault(given text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN given !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' OR given ~ '^ff|-0{32}-|-0{16}-'
        THEN 'is not of the form 00-<32 digits>-<16 digits>-<2 digits>, in lower-case hexadecimal' END
$$;

-- As it is kept.
CREATE OR REPLACE FUNCTION acta._backoff_text(given text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE json_typeof(given::json) WHEN 'string' THEN '"none"'
        ELSE format('{"initial":"%s","max":"%s"}', given::json ->> 'initial', given::json ->> 'max') END
$$;

-- Refuses an argument that has a fault.
CREATE OR REPLACE FUNCTION acta._demand(what text, given text, fault text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF fault IS NOT NULL THEN
        PERFORM acta._refuse('invalid', format('%s %L %s', what, CASE WHEN length(given) > 80 THEN left(given, 80) || '…'
                                               ELSE given END, fault), what, left(given, 80));
    END IF;
END $$;

-- The members of a list of objects, as texts: `kinds` says what each may be, and is what is known. A member that is null is as
-- good as none.
CREATE OR REPLACE FUNCTION acta._members(what text, list json, most integer, kinds jsonb, OUT size integer, OUT nths bigint[],
                                         OUT keys text[], OUT vals text[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    whole text := list::text;
    marker text := '';
    odd record;
BEGIN
    IF list IS NULL OR json_typeof(list) <> 'array' THEN
        PERFORM acta._demand(what, whole, 'is no JSON array of objects');
    END IF;
    size := json_array_length(list);
    IF size > most THEN
        PERFORM acta._demand('number of ' || what, size::text, format('is more than the %s allowed', most));
    END IF;
    -- PostgreSQL takes no object apart that holds an escape of something which its texts can't hold, even in a value that is
    -- only passed on. So escapes are hidden while it does.
    IF whole ~* '\\u(0000|d[89a-f])' THEN
        FOR i IN 0 .. length(whole) LOOP
            marker := format('~%s~', i);
            EXIT WHEN strpos(whole, marker) = 0;
        END LOOP;
        whole := regexp_replace(whole, '(?<!\\)((?:\\\\)*)\\u', '\1' || marker, 'g');
    END IF;
    SELECT e.nth - 1 AS at INTO odd FROM json_array_elements(whole::json) WITH ORDINALITY e (item, nth)
    WHERE json_typeof(e.item) <> 'object' ORDER BY e.nth LIMIT 1;
    IF FOUND THEN
        PERFORM acta._refuse('invalid', format('%s[%s] is no JSON object', what, odd.at), what, at_index => odd.at::integer);
    END IF;
    SELECT array_agg(e.nth), array_agg(m.key),
           array_agg(CASE WHEN marker = '' THEN btrim(m.value::text, E' \t\n\r')
                          ELSE replace(btrim(m.value::text, E' \t\n\r'), marker, '\u') END)
    INTO nths, keys, vals
    FROM json_array_elements(whole::json) WITH ORDINALITY e (item, nth), json_each(e.item) m;
    SELECT m.nth - 1 AS at, m.key, m.val, m.why INTO odd FROM (
        SELECT i.nth, i.key, i.val, CASE
            WHEN kinds ->> i.key IS NULL THEN 'is not known; known are ' || (SELECT string_agg(k, ', ') FROM jsonb_object_keys(kinds) k)
            WHEN i.val = 'null' OR kinds ->> i.key IN ('json', 'value') THEN NULL
            WHEN kinds ->> i.key = 'number' THEN CASE WHEN i.val !~ '^-?[0-9]{1,9}$' THEN 'is no whole number' END
            WHEN kinds ->> i.key = 'large' THEN CASE WHEN i.val !~ '^[0-9]{1,18}$' THEN 'is no whole number' END
            WHEN kinds ->> i.key = 'flag' THEN CASE WHEN i.val NOT IN ('true', 'false') THEN 'is neither true nor false' END
            WHEN kinds ->> i.key = 'backoff' THEN acta._backoff_fault(i.val)
            WHEN i.val NOT LIKE '"%' THEN 'is no string'
            WHEN kinds ->> i.key = 'instant' AND acta._instant_of(i.val::json #>> '{}') IS NULL
                THEN 'is not RFC 3339 with a zone, like 2026-10-03T09:12:00.000Z'
            WHEN kinds ->> i.key = 'span' AND acta._span_of(i.val::json #>> '{}') IS NULL
                THEN 'is not a number with a unit, like 90s, 10m, 2h, 7d or 250ms, of at most 1000 years'
            END AS why
        FROM unnest(nths, keys, vals) i (nth, key, val)
        UNION ALL
        SELECT t.nth, t.key, NULL, 'stands there twice' FROM unnest(nths, keys) t (nth, key) GROUP BY t.nth, t.key
        HAVING count(*) > 1
    ) m WHERE m.why IS NOT NULL ORDER BY m.nth LIMIT 1;
    IF FOUND THEN
        PERFORM acta._refuse('invalid', format('%s[%s].%s %s %s', what, odd.at, odd.key, left(odd.val, 80), odd.why), odd.key,
                             left(odd.val, 80), at_index => odd.at::integer);
    END IF;
    vals := ARRAY(SELECT CASE WHEN kinds ->> i.key = 'json' THEN i.val
                              WHEN i.val = 'null' THEN NULL
                              WHEN i.val LIKE '"%' AND kinds ->> i.key NOT IN ('value', 'backoff') THEN i.val::json #>> '{}'
                              ELSE i.val END
                  FROM unnest(keys, vals) WITH ORDINALITY i (key, val, nth) ORDER BY i.nth);
END $$;
