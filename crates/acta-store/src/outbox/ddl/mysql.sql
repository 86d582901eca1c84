-- Rows say "please run this job". The application inserts them in the transaction that saves what they are about; a relay carries
-- them into the ledger once that has committed, and deletes them.
CREATE TABLE {table} (
    id             bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    -- The instant and chance: what is staged together lies together in the ledger.
    message        varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                   DEFAULT (concat(lpad(lower(hex(timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000)), 12, '0'),
                                   replace(uuid(), '-', ''))) CHECK (char_length(message) >= 1),
    -- The queue: queues/<name>, transactions/<name>, or a plain name.
    namespace      varchar(120) NOT NULL CHECK (char_length(namespace) >= 1),
    name           varchar(100) CHECK (char_length(name) >= 1),
    payload        longtext NOT NULL,
    lane           varchar(512) CHECK (char_length(lane) >= 1),
    dedup_key      varchar(512) CHECK (char_length(dedup_key) >= 1),
    -- What else is said of the job, as a JSON object.
    options        text,
    staged_ms      bigint NOT NULL DEFAULT (timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000),
    -- The relay's: 0 pending, 1 deferred, 2 parked behind the first of its lane, 3 quarantined.
    status         tinyint NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
    refusals       int NOT NULL DEFAULT 0,
    until_ms       bigint,
    requeued_ms    bigint,
    quarantined_ms bigint,
    fault          longtext,
    CHECK ((status = 1) = (until_ms IS NOT NULL)),
    INDEX {name}_status (status, id),
    INDEX {name}_lane (namespace, lane, status, id),
    INDEX {name}_due (until_ms)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Which outbox this is: the ledger knows its deliveries by it. A copy of the table that lives on by itself needs another. And which
-- relay has it, until when, and since when rows may have arrived that are still here.
CREATE TABLE {table}_source (
    one      tinyint NOT NULL PRIMARY KEY CHECK (one = 1),
    id       varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (uuid()) CHECK (char_length(id) >= 1),
    relay    varchar(64),
    until_ms bigint,
    since_ms bigint
) ENGINE = InnoDB;
INSERT INTO {table}_source (one) VALUES (1);
-- What operators have removed from quarantine for good, who and why. The application may delete from it what it likes.
CREATE TABLE {table}_discarded (
    id             bigint NOT NULL,
    message        varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    namespace      varchar(120) NOT NULL,
    name           varchar(100),
    payload        longtext NOT NULL,
    lane           varchar(512),
    dedup_key      varchar(512),
    options        longtext,
    refusals       int NOT NULL,
    staged_ms      bigint NOT NULL,
    quarantined_ms bigint,
    fault          longtext,
    discarded_ms   bigint NOT NULL,
    actor          longtext,
    reason         longtext
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
