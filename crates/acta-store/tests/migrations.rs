//! A ledger of an earlier release: refused until it is migrated, and whole afterwards.

mod common;

use acta_core::store::{Claim, ClaimOutcome, Claimant, Outcome, Settlement, Wave};
use acta_core::{Error, Job, Label, Namespace, Store};
use acta_store::{Migration, PostgresStore, SqliteStore, postgres, sqlite};
use acta_testkit::postgres::{Database, Server, sql};

/// One job in each place that a schema's change may touch: ready, held and lapsed, due, to expire, ended, behind another.
const CONTENTS: &str = "
INSERT INTO acta.namespaces (path) VALUES ('q');
INSERT INTO acta.lanes (ns, name, live) VALUES (1, 'A', 2);
INSERT INTO acta.lines (ns, priority, floor) VALUES (1, 50, 0);
INSERT INTO acta.jobs (job, created_at, ns, id, lane, payload)
SELECT n, 1, 1, 'q-item-1-abcd' || n, CASE WHEN n IN (2, 3) THEN 'A' END, 'null' FROM generate_series(1, 6) n;
INSERT INTO acta.standing (job, place, lane, ns, name, max_attempts, attempts, fence, state, priority, flags, run_at, expires_at,
                           lease_expires_at, claimed_by, claimed_at, finished_at, prune_at)
VALUES (1, 1, NULL, 1, 0, 15, 0, 0, 1, 50, 256, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
       (2, 2, 1,    1, 0, 15, 1, 1, 3, 50, 0,   NULL, NULL, 2,    'r',  1,    NULL, NULL),
       (3, 3, 1,    1, 0, 15, 0, 0, 0, 50, 0,   NULL, NULL, NULL, NULL, NULL, NULL, NULL),
       (4, 4, NULL, 1, 0, 15, 0, 0, 2, 50, 0,   5,    NULL, NULL, NULL, NULL, NULL, NULL),
       (5, 5, NULL, 1, 0, 15, 0, 0, 1, 50, 256, NULL, 9,    NULL, NULL, NULL, NULL, NULL),
       (6, 6, NULL, 1, 0, 15, 1, 1, 6, 50, 0,   NULL, NULL, NULL, 'r',  1,    2,    253402128000000);
SELECT setval('acta.numbers', 6);
-- A function whose arguments and answer have changed since.
CREATE FUNCTION acta._recover(queue text) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION acta._now(given bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'now' $$";

/// What there is in the schema, whatever its history.
const SCHEMA: &str = "
SELECT c.oid::regclass || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attgenerated::text
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'acta'::regnamespace AND NOT a.attisdropped
UNION ALL SELECT p.oid::regprocedure || ' ' || p.prorettype::regtype FROM pg_proc p WHERE p.pronamespace = 'acta'::regnamespace
UNION ALL SELECT c.conrelid::regclass || ' ' || pg_get_constraintdef(c.oid) FROM pg_constraint c
    WHERE c.connamespace = 'acta'::regnamespace
ORDER BY 1";

fn claimed(outcome: ClaimOutcome) -> Vec<Job> {
    match outcome {
        ClaimOutcome::Claimed(jobs) => jobs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_earlier_ledger_is_migrated_when_told_to_and_loses_nothing() {
    let database = Database::new(Server::shared_url(), None);
    let role = format!("acta_migrated_{}", std::process::id());
    let all = postgres::pending(None);
    let later = postgres::pending(Some(1)).migrations.len();
    assert_eq!(later, all.migrations.len() - 1);
    let (first, _) = all.script.split_once("-- What PostgreSQL keeps as an expression").unwrap();
    sql(&database.url(), first).unwrap();
    sql(&database.url(), CONTENTS).unwrap();
    sql(&database.url(), &format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA acta TO {role}")).unwrap();
    acta_testkit::block_on(async {
        let open = || PostgresStore::new(&database.url().parse().unwrap(), postgres::Options::default()).unwrap();
        let refused = open().create_or_accept().await.unwrap_err();
        assert!(matches!(&refused, Error::Unreadable { why, .. } if why.contains("orchestrator migrate")), "{refused}");
        assert_eq!(open().migrate().await.unwrap().len(), later);
        let store = open();
        store.create_or_accept().await.unwrap();
        assert_eq!(store.migrate().await.unwrap(), Vec::<&Migration>::new());

        let queue: Namespace = "q".parse().unwrap();
        let claim = Claim { count: 10, ..Claim::one(queue.clone(), Label::new("robot", "robot-1").unwrap()) };
        let jobs = claimed(store.claim(claim.clone()).await.unwrap().outcome);
        let fences: Vec<(u64, u64)> = jobs.iter().map(|job| (job.row, job.standing.fence)).collect();
        // The head of the lane was lost, and is claimed again; the fifth has expired.
        assert_eq!(fences, [(1, 1), (2, 2), (4, 1)]);
        let settle = |job: &Job| Settlement {
            id: job.identity.id.clone(),
            claimant: Claimant { fence: Some(job.standing.fence), robot: None },
            outcome: Outcome::Succeeded(None),
        };
        let wave = Wave { namespace: queue, settlements: jobs.iter().map(settle).collect() };
        for answer in store.settle(wave).await.unwrap() {
            answer.unwrap();
        }
        let next = claimed(store.claim(claim).await.unwrap().outcome);
        assert_eq!(next.iter().map(|job| job.row).collect::<Vec<_>>(), [3]);
    });
    let drifted = sql(&database.url(), include_str!("../src/postgres/sql/drifted.sql")).unwrap();
    assert_eq!(drifted, ["0"]);
    let anew = Database::new(Server::shared_url(), Some(common::template()));
    assert_eq!(sql(&database.url(), SCHEMA).unwrap(), sql(&anew.url(), SCHEMA).unwrap());
    let may = format!("SELECT has_table_privilege('{role}', 'acta.standing', 'INSERT')");
    assert_eq!(sql(&database.url(), &may).unwrap(), ["t"]);
    sql(&database.url(), &format!("DROP OWNED BY {role}; DROP ROLE {role}")).unwrap();
}

#[test]
fn an_earlier_file_is_migrated_when_told_to_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acta.db");
    let all = SqliteStore::pending(&path).unwrap();
    assert!(all.migrations.len() > 1 && !path.exists(), "looking makes nothing");
    acta_testkit::block_on(async {
        let store = SqliteStore::open(&path, sqlite::Options::default()).unwrap();
        common::child::add(&store, vec![common::child::numbered(1), common::child::numbered(2)]).await.unwrap();
    });
    assert!(SqliteStore::pending(&path).unwrap().script.is_empty());
    let earlier = "ALTER TABLE acta_jobs DROP COLUMN traceparent; DROP TABLE acta_minutes; DROP TABLE acta_workers;
        DELETE FROM acta_migrations WHERE version > 1";
    rusqlite::Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
    let refused = SqliteStore::open(&path, sqlite::Options::default()).unwrap_err();
    assert!(matches!(&refused, Error::Unreadable { why, .. } if why.contains("orchestrator migrate")), "{refused}");
    assert_eq!(SqliteStore::pending(&path).unwrap().migrations, SqliteStore::migrate(&path).unwrap());
    assert_eq!(SqliteStore::migrate(&path).unwrap(), Vec::<&Migration>::new());
    acta_testkit::block_on(async {
        let store = SqliteStore::open(&path, sqlite::Options::default()).unwrap();
        assert_eq!(common::child::claim(&store, "r", 10).await.unwrap().len(), 2);
    });
    // Whoever runs the script by hand gets the same.
    let by_hand = folder.path().join("by-hand.db");
    let connection = rusqlite::Connection::open(&by_hand).unwrap();
    connection.execute_batch(&format!("BEGIN;\n{}COMMIT;", all.script)).unwrap();
    assert!(SqliteStore::pending(&by_hand).unwrap().script.is_empty());
}
