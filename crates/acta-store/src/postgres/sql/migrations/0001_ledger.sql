-- The ledger's tables. All instants are milliseconds since 1970, all texts that are sorted sort by their bytes.

CREATE TABLE acta.migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at bigint NOT NULL
);

-- One row: whether the ledger takes writes, as JSON. A copied one does not.
CREATE TABLE acta.ledger (
    one      boolean PRIMARY KEY CHECK (one),
    openness text NOT NULL,
    is_open  boolean NOT NULL
);
INSERT INTO acta.ledger (one, openness, is_open) VALUES (true, '{"is":"open"}', true);

-- The numbers of rows and places.
CREATE SEQUENCE acta.numbers AS bigint;

CREATE TABLE acta.namespaces (
    ns           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path         text COLLATE "C" NOT NULL,
    lease_ms     bigint CHECK (lease_ms > 0),
    retention_ms bigint CHECK (retention_ms >= 0),
    paused       boolean NOT NULL DEFAULT false,
    due_from     bigint NOT NULL DEFAULT 0   -- nothing is due before; see acta.lines
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX namespaces_path ON acta.namespaces (path);
CREATE UNIQUE INDEX namespaces_lower ON acta.namespaces (lower(path));

-- Every definition's name that was ever used; what it says where it was registered.
CREATE TABLE acta.names (
    number       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    is_defined   boolean NOT NULL DEFAULT false,
    lane         text,
    priority     smallint CHECK (priority BETWEEN 0 AND 100),
    max_attempts integer CHECK (max_attempts > 0),
    retryable    boolean,
    backoff      text,
    lease_ms     bigint CHECK (lease_ms > 0),
    retention_ms bigint CHECK (retention_ms >= 0)
);
CREATE UNIQUE INDEX names_name ON acta.names (name);
CREATE UNIQUE INDEX names_lower ON acta.names (lower(name));
CREATE INDEX names_lease ON acta.names (number) WHERE lease_ms IS NOT NULL;

-- How many jobs of a namespace are in each state (failed as a business exception apart, at 16 more). Every write adds a row
-- of changes, so that no two of them wait for each other; maintenance folds those into the counts.
CREATE TABLE acta.counts (
    ns      integer NOT NULL,
    counter smallint NOT NULL CHECK (counter BETWEEN 0 AND 31),
    value   bigint NOT NULL,
    PRIMARY KEY (ns, counter)
);
CREATE TABLE acta.changes (
    ns      integer NOT NULL,
    at      bigint NOT NULL,
    -- At the place counter + 1: how many more.
    amounts integer[] NOT NULL
);

-- Lanes with live members, and paused ones. Whoever changes a lane's members holds its row, in the order of the names.
CREATE TABLE acta.lanes (
    lane   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ns     integer NOT NULL REFERENCES acta.namespaces,
    name   text COLLATE "C" NOT NULL,
    live   bigint NOT NULL CHECK (live >= 0),
    paused boolean NOT NULL DEFAULT false,
    UNIQUE (ns, name)
) WITH (fillfactor = 50);

-- What a job is: written once.
CREATE TABLE acta.jobs (
    job        bigint PRIMARY KEY,
    created_at bigint NOT NULL,
    lease_ms   bigint CHECK (lease_ms > 0),
    ns         integer NOT NULL,
    is_foreign boolean NOT NULL DEFAULT false,
    id         text COLLATE "C" NOT NULL,
    name       text,
    lane       text COLLATE "C",
    key        text COLLATE "C",
    dedup_key  text COLLATE "C",
    backoff    text,
    payload    text NOT NULL
);
CREATE UNIQUE INDEX jobs_foreign ON acta.jobs (id) WHERE is_foreign;
CREATE INDEX jobs_lane ON acta.jobs (ns, lane, job) WHERE lane IS NOT NULL;
CREATE INDEX jobs_key ON acta.jobs (ns, key, job) WHERE key IS NOT NULL;

-- Where a job stands: narrow, and written at every step.
-- States: 0 blocked, 1 ready, 2 scheduled, 3 claimed, 4 running, 5 waiting, 6 succeeded, 7 failed, 8 cancelled.
CREATE TABLE acta.standing (
    job              bigint PRIMARY KEY,
    place            bigint NOT NULL,
    fence            bigint NOT NULL DEFAULT 0,
    lane             bigint,                        -- while it is alive
    run_at           bigint,
    expires_at       bigint,
    wait_until       bigint,
    lease_expires_at bigint,
    claimed_at       bigint,
    finished_at      bigint,
    retention_ms     bigint,
    prune_at         bigint,
    settled          bigint,                        -- digest of the last outcome, the state that it led to in the last 4 bits
    settled_run_at   bigint,
    ns               integer NOT NULL,
    name             integer NOT NULL,              -- of acta.names; 0: none
    attempts         integer NOT NULL DEFAULT 0,
    max_attempts     integer NOT NULL,
    lost_leases      integer NOT NULL DEFAULT 0,
    state            smallint NOT NULL,
    priority         smallint NOT NULL,
    -- 1 paused, 2 lane paused (kept on the head alone), 4 cancel requested, 8 not retryable, 16 failed as a business
    -- exception, 32 has details, 64 keeps its deduplication key, 128 keeps it while live, 256 ready since its enqueue
    flags            smallint NOT NULL,
    claimed_by       text,
    arriving         text COLLATE "C",              -- the lane that it will join: its transaction could not lock it
    -- When time alone changes something: a due run_at, a deadline, a lapse, an expiry.
    due_at           bigint GENERATED ALWAYS AS
                     (least(CASE state WHEN 2 THEN run_at WHEN 5 THEN wait_until ELSE lease_expires_at END,
                            CASE WHEN fence = 0 AND state < 6 THEN expires_at END)) STORED,
    -- One constraint, since each is asked at every step: what each state may have, and what no row may lack. A lease goes together
    -- with claimed and running, an end with the final states, a lane (or the one it will join) with life.
    CONSTRAINT standing_is_sound CHECK (
        CASE WHEN state IN (1, 2, 5) THEN lease_expires_at IS NULL AND finished_at IS NULL AND arriving IS NULL
             WHEN state IN (3, 4) THEN lease_expires_at IS NOT NULL AND finished_at IS NULL AND arriving IS NULL
             WHEN state IN (6, 7, 8) THEN finished_at IS NOT NULL AND lease_expires_at IS NULL AND lane IS NULL
                                          AND arriving IS NULL
             WHEN state = 0 THEN (lane IS NULL) <> (arriving IS NULL) AND lease_expires_at IS NULL AND finished_at IS NULL
             ELSE false END
        AND fence >= attempts AND attempts >= 0 AND max_attempts > 0 AND priority BETWEEN 0 AND 100)
) WITH (fillfactor = 80);
-- All but the key are partial, so that blocked and finished jobs cost a claim nothing, and a step touches only the indexes that
-- it moves a job in or out of. A statement repeats the condition of the index that it means.
--
-- The claim scan: what was ready from the beginning, from its floor on, and what became so later; neither if it is held.
CREATE INDEX standing_fresh ON acta.standing (ns, priority DESC, place) WHERE state = 1 AND flags & 259 = 256;
CREATE INDEX standing_late ON acta.standing (ns, priority DESC, place) WHERE state = 1 AND flags & 259 = 0;
CREATE INDEX standing_due ON acta.standing (ns, due_at, place) WHERE due_at IS NOT NULL;
-- Heads that time alone makes no candidate.
CREATE INDEX standing_aside ON acta.standing (ns, name)
WHERE state IN (1, 2, 5) AND (flags & 3 <> 0 OR (state = 5 AND wait_until IS NULL));
-- A lane has one member that is neither blocked nor ended.
CREATE UNIQUE INDEX standing_head ON acta.standing (lane) WHERE lane IS NOT NULL AND state BETWEEN 1 AND 5;
CREATE INDEX standing_next ON acta.standing (lane, place) WHERE lane IS NOT NULL AND state = 0;
CREATE INDEX standing_arriving ON acta.standing (ns, arriving, job) WHERE arriving IS NOT NULL;
CREATE INDEX standing_prune ON acta.standing (ns, prune_at, job) WHERE prune_at IS NOT NULL;
CREATE INDEX standing_unsuccessful ON acta.standing (ns, state, job) WHERE state IN (7, 8);

-- Of each priority the place below which no fresh job is ready. Claims start there, so that they do not step over what is
-- gone and can't be vacuumed while somebody holds an old snapshot.
CREATE TABLE acta.lines (
    ns       integer NOT NULL,
    priority smallint NOT NULL,
    floor    bigint NOT NULL,
    PRIMARY KEY (ns, priority)
) WITH (fillfactor = 50);
-- How far floors may go: no enqueue that was running when `number` was read is running any more once none of `running` is.
CREATE TABLE acta.tide (
    one     boolean PRIMARY KEY CHECK (one),
    number  bigint NOT NULL,
    running text[] NOT NULL
);
INSERT INTO acta.tide (one, number, running) VALUES (true, 0, '{}');

-- What few jobs have.
CREATE TABLE acta.details (
    job        bigint PRIMARY KEY,
    started_at bigint,
    wait       text,
    progress   text,
    output     text,
    exception  text
);

-- Deduplication keys of live, finished and pruned jobs. An empty id is a key that was just taken.
CREATE TABLE acta.keys (
    ns         integer NOT NULL,
    key        text COLLATE "C" NOT NULL,
    id         text NOT NULL,
    job        bigint,
    digest     bigint NOT NULL,
    expires_at bigint,
    state      smallint NOT NULL,
    PRIMARY KEY (ns, key)
);
CREATE INDEX keys_expired ON acta.keys (ns, expires_at) WHERE expires_at IS NOT NULL;

-- What the row can't tell. Append-only.
CREATE TABLE acta.events (
    event     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job       bigint,
    at        bigint NOT NULL,
    fence     bigint,
    run_at    bigint,
    ns        integer NOT NULL,
    kind      text NOT NULL,
    lane      text,
    actor     text,
    reason    text,
    exception text
);
CREATE INDEX events_job ON acta.events (job, event) WHERE job IS NOT NULL;
-- Pauses of namespaces and lanes.
CREATE INDEX events_queue ON acta.events (ns, lane, event) WHERE job IS NULL;

CREATE TABLE acta.signals (
    signal  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job     bigint NOT NULL,
    name    text NOT NULL,
    payload text NOT NULL
);
CREATE INDEX signals_job ON acta.signals (job, name, signal);

CREATE TABLE acta.steps (
    step  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job   bigint NOT NULL,
    name  text NOT NULL,
    value text NOT NULL,
    UNIQUE (job, name)
);

-- What somebody has put into the files that a ledger was copied from, of a job or of its namespace; kept, not understood.
CREATE TABLE acta.foreign_members (
    member bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job    bigint,
    ns     integer NOT NULL,
    name   text NOT NULL,
    value  text NOT NULL
);
CREATE INDEX foreign_members_job ON acta.foreign_members (job) WHERE job IS NOT NULL;

-- A whole job, as every call answers it.
CREATE VIEW acta.whole AS
SELECT s.job, s.state, s.place, s.priority, s.lane AS lane_number, s.flags, s.attempts, s.max_attempts, s.fence,
       s.lost_leases, s.run_at, s.expires_at, s.wait_until, s.lease_expires_at, s.claimed_by, s.claimed_at,
       s.finished_at, s.retention_ms, s.prune_at, s.settled, s.settled_run_at,
       j.id, j.name, j.lane, j.key, j.dedup_key, j.payload, j.created_at, j.backoff, j.lease_ms,
       d.wait, d.progress, d.started_at, d.output, d.exception, s.ns
FROM acta.standing s
JOIN acta.jobs j ON j.job = s.job
LEFT JOIN acta.details d ON d.job = s.job AND s.flags & 32 <> 0;

-- What is known of a job to add before anything is made: the holder of its key, or which of the jobs that are made by this call
-- has it (`twin`, counted from 1).
CREATE TYPE acta.answered AS (id text, state smallint, payload_differs boolean, twin integer);
