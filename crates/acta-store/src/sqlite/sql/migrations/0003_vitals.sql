-- What happened in each minute, by its number since 1970; of a day.
CREATE TABLE acta_minutes (
    ns        INTEGER NOT NULL,
    minute    INTEGER NOT NULL,
    added     INTEGER NOT NULL,
    claimed   INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    PRIMARY KEY (ns, minute)
) STRICT, WITHOUT ROWID;

-- The workers of a namespace, as each has shown itself last.
CREATE TABLE acta_workers (
    ns          INTEGER NOT NULL,
    id          TEXT NOT NULL,
    robot       TEXT NOT NULL,
    host        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    version     TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    running     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
