-- Rows say "please run this job". The application inserts them in the transaction that saves what they are about; a relay carries
-- them into the ledger once that has committed, and deletes them.
CREATE TABLE {table} (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The instant and chance: what is staged together lies together in the ledger.
    message        TEXT NOT NULL DEFAULT (lower(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
                                                || hex(randomblob(10)))) CHECK (length(message) BETWEEN 1 AND 64),
    -- The queue: queues/<name>, transactions/<name>, or a plain name.
    namespace      TEXT NOT NULL CHECK (length(namespace) BETWEEN 1 AND 120),
    name           TEXT CHECK (length(name) BETWEEN 1 AND 100),
    payload        TEXT NOT NULL,
    lane           TEXT CHECK (length(lane) BETWEEN 1 AND 512),
    dedup_key      TEXT CHECK (length(dedup_key) BETWEEN 1 AND 512),
    -- What else is said of the job, as a JSON object.
    options        TEXT,
    staged_ms      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    -- The relay's: 0 pending, 1 deferred, 2 parked behind the first of its lane, 3 quarantined.
    status         INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
    refusals       INTEGER NOT NULL DEFAULT 0,
    until_ms       INTEGER,
    requeued_ms    INTEGER,
    quarantined_ms INTEGER,
    fault          TEXT,
    CHECK ((status = 1) = (until_ms IS NOT NULL))
);
CREATE INDEX {name}_pending ON {table} (id) WHERE status = 0;
CREATE INDEX {name}_held ON {table} (namespace, lane, id) WHERE status IN (1, 2) AND lane IS NOT NULL;
CREATE INDEX {name}_due ON {table} (until_ms) WHERE until_ms IS NOT NULL;
CREATE INDEX {name}_quarantined ON {table} (id) WHERE status = 3;
-- Which outbox this is: the ledger knows its deliveries by it. A copy of the table that lives on by itself needs another. And which
-- relay has it, until when, and since when rows may have arrived that are still here.
CREATE TABLE {table}_source (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    id       TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))) CHECK (length(id) BETWEEN 1 AND 64),
    relay    TEXT,
    until_ms INTEGER,
    since_ms INTEGER
);
INSERT INTO {table}_source (one) VALUES (1);
-- What operators have removed from quarantine for good, who and why. The application may delete from it what it likes.
CREATE TABLE {table}_discarded (
    id             INTEGER NOT NULL,
    message        TEXT NOT NULL PRIMARY KEY,
    namespace      TEXT NOT NULL,
    name           TEXT,
    payload        TEXT NOT NULL,
    lane           TEXT,
    dedup_key      TEXT,
    options        TEXT,
    refusals       INTEGER NOT NULL,
    staged_ms      INTEGER NOT NULL,
    quarantined_ms INTEGER,
    fault          TEXT,
    discarded_ms   INTEGER NOT NULL,
    actor          TEXT,
    reason         TEXT
);
