-- Rows say "please run this job". The application inserts them in the transaction that saves what they are about; a relay carries
-- them into the ledger once that has committed, and deletes them.
CREATE TABLE {table} (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The instant and chance: what is staged together lies together in the ledger.
    message        text NOT NULL DEFAULT lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
                                         || substr(replace(gen_random_uuid()::text, '-', ''), 13) CHECK (length(message) BETWEEN 1 AND 64),
    -- The queue: queues/<name>, transactions/<name>, or a plain name.
    namespace      text NOT NULL CHECK (length(namespace) BETWEEN 1 AND 120),
    name           text CHECK (length(name) BETWEEN 1 AND 100),
    payload        text NOT NULL,
    lane           text CHECK (length(lane) BETWEEN 1 AND 512),
    dedup_key      text CHECK (length(dedup_key) BETWEEN 1 AND 512),
    -- What else is said of the job, as a JSON object.
    options        text,
    staged_ms      bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    -- The relay's: 0 pending, 1 deferred, 2 parked behind the first of its lane, 3 quarantined.
    status         smallint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
    refusals       integer NOT NULL DEFAULT 0,
    until_ms       bigint,
    requeued_ms    bigint,
    quarantined_ms bigint,
    fault          text,
    CHECK ((status = 1) = (until_ms IS NOT NULL))
);
CREATE INDEX {name}_pending ON {table} (id) WHERE status = 0;
CREATE INDEX {name}_held ON {table} (namespace, lane, id) WHERE status IN (1, 2) AND lane IS NOT NULL;
CREATE INDEX {name}_due ON {table} (until_ms) WHERE until_ms IS NOT NULL;
CREATE INDEX {name}_quarantined ON {table} (id) WHERE status = 3;
-- Which outbox this is: the ledger knows its deliveries by it. A copy of the table that lives on by itself needs another. And which
-- relay has it, until when, and since when rows may have arrived that are still here.
CREATE TABLE {table}_source (
    id       text NOT NULL DEFAULT gen_random_uuid()::text CHECK (length(id) BETWEEN 1 AND 64),
    relay    text,
    until_ms bigint,
    since_ms bigint
);
CREATE UNIQUE INDEX {name}_source_one ON {table}_source ((true));
INSERT INTO {table}_source DEFAULT VALUES;
-- What operators have removed from quarantine for good, who and why. The application may delete from it what it likes.
CREATE TABLE {table}_discarded (
    id             bigint NOT NULL,
    message        text NOT NULL PRIMARY KEY,
    namespace      text NOT NULL,
    name           text,
    payload        text NOT NULL,
    lane           text,
    dedup_key      text,
    options        text,
    refusals       integer NOT NULL,
    staged_ms      bigint NOT NULL,
    quarantined_ms bigint,
    fault          text,
    discarded_ms   bigint NOT NULL,
    actor          text,
    reason         text
);
