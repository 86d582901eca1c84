-- What happened in each minute, by its number since 1970; of a day. Folded from the changes of the counts.
CREATE TABLE acta.minutes (
    ns        integer NOT NULL,
    minute    bigint NOT NULL,
    added     bigint NOT NULL,
    claimed   bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed    bigint NOT NULL,
    cancelled bigint NOT NULL,
    PRIMARY KEY (ns, minute)
) WITH (fillfactor = 50);
-- The workers of a namespace, as each has shown itself last.
CREATE TABLE acta.workers (
    ns          integer NOT NULL,
    id          text COLLATE "C" NOT NULL,
    robot       text NOT NULL,
    host        text NOT NULL,
    pid         bigint NOT NULL,
    version     text NOT NULL,
    concurrency bigint NOT NULL,
    running     bigint NOT NULL,
    started_at  bigint NOT NULL,
    seen_at     bigint NOT NULL,
    PRIMARY KEY (ns, id)
) WITH (fillfactor = 50);
