-- The ledger. Every table is ours by its prefix, so that it can live in an application's own database file.

CREATE TABLE acta_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- One row: whether the ledger takes writes, as JSON. A copied one does not.
CREATE TABLE acta_ledger (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    openness TEXT NOT NULL CHECK (json_valid(openness))
) STRICT;
INSERT INTO acta_ledger (one, openness) VALUES (1, '{"is":"open"}');

CREATE TABLE acta_namespaces (
    ns       INTEGER PRIMARY KEY,
    path     TEXT NOT NULL COLLATE NOCASE UNIQUE,
    settings TEXT NOT NULL,
    paused   INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1))
) STRICT;

-- What every operation counts, on one page. Of a namespace how many jobs are in each state (failed as a business
-- exception apart, at 16 more), kept with every change, so that nothing ever counts by scanning. Of namespace 0, which is
-- none: at 0 the last number given to a job's row or place.
CREATE TABLE acta_counters (
    ns      INTEGER NOT NULL,
    counter INTEGER NOT NULL CHECK (counter BETWEEN 0 AND 31),
    value   INTEGER NOT NULL CHECK (value >= 0),
    PRIMARY KEY (ns, counter)
) STRICT, WITHOUT ROWID;
INSERT INTO acta_counters (ns, counter, value) VALUES (0, 0, 0);

-- Every definition's name that was ever used; the definition itself where it was registered.
CREATE TABLE acta_names (
    number     INTEGER PRIMARY KEY CHECK (number > 0),
    name       TEXT NOT NULL COLLATE NOCASE UNIQUE,
    definition TEXT
) STRICT;

-- Lanes with live members, and paused ones.
CREATE TABLE acta_lanes (
    lane   INTEGER PRIMARY KEY AUTOINCREMENT,
    ns     INTEGER NOT NULL REFERENCES acta_namespaces,
    name   TEXT NOT NULL,
    live   INTEGER NOT NULL CHECK (live >= 0),
    paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
    UNIQUE (ns, name)
) STRICT;

-- What a job is: written once.
CREATE TABLE acta_jobs (
    job        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL,
    name       TEXT,
    lane       TEXT,
    key        TEXT,
    dedup_key  TEXT,
    created_at INTEGER NOT NULL,
    backoff    TEXT CHECK (json_valid(backoff)),
    lease_ms   INTEGER CHECK (lease_ms > 0),
    is_foreign INTEGER NOT NULL CHECK (is_foreign IN (0, 1)),
    ns         INTEGER NOT NULL,
    payload    TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX acta_jobs_foreign ON acta_jobs (id) WHERE is_foreign = 1;
CREATE INDEX acta_jobs_lane ON acta_jobs (ns, lane, job) WHERE lane IS NOT NULL;
CREATE INDEX acta_jobs_key ON acta_jobs (ns, key, job) WHERE key IS NOT NULL;

-- Where a job stands: narrow, and written at every step.
-- States: 0 blocked, 1 ready, 2 scheduled, 3 claimed, 4 running, 5 waiting, 6 succeeded, 7 failed, 8 cancelled.
CREATE TABLE acta_standing (
    job              INTEGER PRIMARY KEY,
    ns               INTEGER NOT NULL,
    name             INTEGER NOT NULL,           -- of acta_names; 0: none
    state            INTEGER NOT NULL CHECK (state BETWEEN 0 AND 8),
    place            INTEGER NOT NULL,
    priority         INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 100),
    -- 1 paused, 2 lane paused (kept on the head alone), 4 cancel requested, 8 not retryable, 16 failed as a business
    -- exception, 32 has details, 64 keeps its deduplication key, 128 keeps it while live
    flags            INTEGER NOT NULL CHECK (flags BETWEEN 0 AND 255),
    attempts         INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_attempts     INTEGER NOT NULL CHECK (max_attempts > 0),
    fence            INTEGER NOT NULL DEFAULT 0 CHECK (fence >= attempts),
    lost_leases      INTEGER NOT NULL DEFAULT 0,
    run_at           INTEGER,
    expires_at       INTEGER,
    wait_until       INTEGER,
    lease_expires_at INTEGER,
    claimed_by       TEXT,
    claimed_at       INTEGER,
    finished_at      INTEGER,
    retention_ms     INTEGER,
    prune_at         INTEGER,
    settled          INTEGER,                    -- digest of the last outcome, the state that it led to in the last 4 bits
    settled_run_at   INTEGER,
    -- Each of these belongs to an index and is null wherever that index has no business, so that blocked and finished
    -- jobs cost a claim nothing, and a step touches only the indexes that it moves a job in or out of.
    ready_place      INTEGER,                    -- the place of a candidate
    due_at           INTEGER,                    -- when time makes a candidate of it: run_at or wait_until
    expires_by       INTEGER,                    -- expires_at, while it may still expire
    aside            INTEGER,                    -- 1: a head that time alone makes no candidate
    head_of          INTEGER,                    -- the lane, of its head
    blocked_in       INTEGER,                    -- the lane, of a blocked member
    unsuccessful     INTEGER,                    -- the state, of a failed or cancelled job
    -- A lease goes together with claimed and running, an end with the final states, a lane with life.
    CHECK ((lease_expires_at IS NOT NULL) = (state IN (3, 4))),
    CHECK ((finished_at IS NOT NULL) = (state >= 6)),
    CHECK ((blocked_in IS NOT NULL) = (state = 0)),
    CHECK (head_of IS NULL OR state BETWEEN 1 AND 5),
    CHECK (ready_place IS NULL OR (state = 1 AND flags & 3 = 0))
) STRICT;
-- The claim scan.
CREATE INDEX acta_ready ON acta_standing (ns, name, priority DESC, ready_place) WHERE ready_place IS NOT NULL;
CREATE INDEX acta_leases ON acta_standing (ns, lease_expires_at, place) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX acta_due ON acta_standing (ns, due_at, place) WHERE due_at IS NOT NULL;
CREATE INDEX acta_expiries ON acta_standing (ns, expires_by, place) WHERE expires_by IS NOT NULL;
CREATE INDEX acta_aside ON acta_standing (ns, name) WHERE aside IS NOT NULL;
-- A lane has one member that is neither blocked nor ended.
CREATE UNIQUE INDEX acta_lane_head ON acta_standing (head_of) WHERE head_of IS NOT NULL;
CREATE INDEX acta_lane_next ON acta_standing (blocked_in, place) WHERE blocked_in IS NOT NULL;
CREATE INDEX acta_prune ON acta_standing (ns, prune_at) WHERE prune_at IS NOT NULL;
CREATE INDEX acta_unsuccessful ON acta_standing (ns, unsuccessful, job) WHERE unsuccessful IS NOT NULL;

-- What few jobs have.
CREATE TABLE acta_details (
    job        INTEGER PRIMARY KEY,
    wait       TEXT,
    progress   TEXT,
    started_at INTEGER,
    output     TEXT,
    exception  TEXT
) STRICT;

-- Deduplication keys of live, finished and pruned jobs.
CREATE TABLE acta_keys (
    ns         INTEGER NOT NULL,
    key        TEXT NOT NULL,
    id         TEXT NOT NULL,
    state      INTEGER NOT NULL,
    digest     INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (ns, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX acta_keys_expired ON acta_keys (ns, expires_at) WHERE expires_at IS NOT NULL;

-- What the row can't tell. Append-only.
CREATE TABLE acta_events (
    event     INTEGER PRIMARY KEY AUTOINCREMENT,
    ns        INTEGER NOT NULL,
    job       INTEGER,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    lane      TEXT,
    fence     INTEGER,
    actor     TEXT,
    reason    TEXT,
    run_at    INTEGER,
    exception TEXT
) STRICT;
CREATE INDEX acta_events_job ON acta_events (job, event) WHERE job IS NOT NULL;
-- Pauses of namespaces and lanes.
CREATE INDEX acta_events_queue ON acta_events (ns, lane, event) WHERE job IS NULL;

CREATE TABLE acta_signals (
    signal  INTEGER PRIMARY KEY,
    job     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;
CREATE INDEX acta_signals_job ON acta_signals (job, name, signal);

-- What somebody has put into the files that a ledger was copied from, of a job or of its namespace; kept, not understood.
CREATE TABLE acta_foreign (
    member INTEGER PRIMARY KEY,
    ns     INTEGER NOT NULL,
    job    INTEGER,
    name   TEXT NOT NULL,
    value  TEXT NOT NULL
) STRICT;
CREATE INDEX acta_foreign_job ON acta_foreign (job) WHERE job IS NOT NULL;

CREATE TABLE acta_steps (
    step  INTEGER PRIMARY KEY,
    job   INTEGER NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (job, name)
) STRICT;
