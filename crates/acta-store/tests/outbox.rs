//! What an outbox costs its database and the application, in PostgreSQL and SQLite. MariaDB is in `outbox_mysql`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acta_core::Span;
use acta_core::relay::{Row, Source};
use acta_store::outbox::{Dialect, TableName, open};
use acta_testkit::postgres::{Database, Server, sql};
use rusqlite::Connection;

const HOLD: Span = Span::of(Duration::from_secs(30));

/// An application's database with an outbox in it.
enum Shop {
    Postgres(Database),
    Sqlite(tempfile::TempDir),
}

impl Shop {
    fn all() -> [Self; 2] {
        [Self::postgres(), Self::sqlite()]
    }

    fn postgres() -> Self {
        let shop = Self::Postgres(Database::new(Server::shared_url(), None));
        shop.run(&Dialect::Postgres.ddl(&TableName::default()));
        // As if a burst has just come: the planner knows of an empty table.
        shop.run("ALTER TABLE acta_outbox SET (autovacuum_enabled = false); ANALYZE acta_outbox");
        shop
    }

    fn sqlite() -> Self {
        let shop = Self::Sqlite(tempfile::tempdir().unwrap());
        shop.run("PRAGMA journal_mode = wal");
        shop.run(&Dialect::Sqlite.ddl(&TableName::default()));
        shop
    }

    fn connection(&self) -> Connection {
        let Self::Sqlite(folder) = self else { panic!("no SQLite") };
        Connection::open(folder.path().join("shop.db")).unwrap()
    }

    fn source(&self) -> Arc<dyn Source> {
        let address = match self {
            Self::Postgres(database) => database.url(),
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("shop.db").display()),
        };
        open(&address, &TableName::default()).unwrap()
    }

    fn run(&self, script: &str) {
        match self {
            Self::Postgres(database) => drop(sql(&database.url(), script).unwrap()),
            Self::Sqlite(_) => self.connection().execute_batch(script).unwrap(),
        }
    }

    fn count(&self, condition: &str) -> i64 {
        let count = format!("SELECT count(*) FROM acta_outbox WHERE {condition}");
        match self {
            Self::Postgres(database) => sql(&database.url(), &count).unwrap()[0].parse().unwrap(),
            Self::Sqlite(_) => self.connection().query_row(&count, [], |row| row.get(0)).unwrap(),
        }
    }

    /// Stages so many rows with these further columns; `n` counts them.
    fn stage(&self, columns: &str, values: &str, count: u32) {
        let numbers = match self {
            Self::Postgres(_) => format!("generate_series(1, {count}) s (n)"),
            Self::Sqlite(_) => {
                format!(
                    "(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s)"
                )
            }
        };
        let script = format!(
            "INSERT INTO acta_outbox (namespace, payload, {columns}) SELECT 'plain', '1', {values} FROM {numbers}"
        );
        self.run(&script);
    }

    /// How many rows and entries of indexes PostgreSQL has looked at so far; what a connection has done is told when it ends.
    fn looks(&self) -> i64 {
        let Self::Postgres(database) = self else { panic!("no PostgreSQL") };
        let all = "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'acta_outbox')
                        + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'acta_outbox')";
        let mut before = -1;
        loop {
            let now: i64 = sql(&database.url(), all).unwrap()[0].parse().unwrap();
            if now == before {
                return now;
            }
            before = now;
            std::thread::park_timeout(Duration::from_millis(400));
        }
    }
}

async fn take_all(source: &dyn Source) -> Vec<Row> {
    let mut rows = Vec::new();
    for _ in 0..200 {
        let taken = source.take("token", 1_000, HOLD).await.unwrap();
        if !taken.has_found {
            return rows;
        }
        rows.extend(taken.rows);
    }
    panic!("there is always something more");
}

/// A head that waits, with a long line behind it, many short lines that wait, and rows in quarantine.
fn crowd(shop: &Shop, count: u32) {
    shop.stage("lane, status, until_ms", "'stuck', 4, 99999999999999", 1);
    shop.stage("lane, status", "'stuck', 2", count);
    shop.stage("lane, status, until_ms", "'lane ' || (n % 200), 4, 99999999999999", 200);
    shop.stage("lane, status", "'lane ' || (n % 200), 2", count);
    shop.stage("lane, status, quarantined_ms", "'lane ' || (n % 20000), 3, 1", count);
    shop.stage("lane", "'free ' || (n % 40)", 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_stay_are_not_looked_at() {
    let shop = Shop::postgres();
    crowd(&shop, 60_000);
    let before = shop.looks();
    let source = shop.source();
    let rows = take_all(&*source).await;
    assert_eq!(rows.len(), 200);
    source.remove("token", &rows.iter().collect::<Vec<_>>()).await.unwrap();
    drop(source);
    let used = shop.looks() - before;
    assert!((200..12_000).contains(&used), "a look at {used} rows for 200");
    assert_eq!(shop.count("status = 2"), 120_000);
}

#[tokio::test]
async fn an_application_on_sqlite_hardly_waits_for_what_stays() {
    let shop = Shop::sqlite();
    crowd(&shop, 100_000);
    let source = shop.source();
    let begun = Instant::now();
    let rows = take_all(&*source).await;
    assert_eq!(rows.len(), 200);
    source.remove("token", &rows.iter().collect::<Vec<_>>()).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// The writes of an application that waits for nobody never meet a relay that has nothing to do.
#[tokio::test]
async fn an_idle_relay_writes_nothing() {
    let shop = Shop::sqlite();
    let source = shop.source();
    let writer = shop.connection();
    writer.busy_timeout(Duration::ZERO).unwrap();
    let relay = tokio::spawn(async move {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1_500) {
            assert!(source.take("token", 1_000, HOLD).await.unwrap().rows.is_empty());
        }
    });
    let mut count = 0;
    while !relay.is_finished() {
        writer.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();
        count += 1;
        tokio::task::yield_now().await;
    }
    relay.await.unwrap();
    assert!(count > 100, "{count}");
}

/// Rows that nobody has let go on, since whoever was to do it has died: all of them come, in as many lanes as there are.
#[tokio::test]
async fn lines_that_were_left_behind_come() {
    for shop in Shop::all() {
        shop.stage("lane, status", "'lane ' || (n % 1200), 2", 2_400);
        let source = shop.source();
        let mut arrived = 0;
        loop {
            let rows = take_all(&*source).await;
            if rows.is_empty() {
                break;
            }
            arrived += rows.len();
            source.remove("token", &rows.iter().collect::<Vec<_>>()).await.unwrap();
        }
        assert_eq!((arrived, shop.count("true")), (2_400, 0));
    }
}

/// An open transaction of the application's holds up the rows that it has changed, and what stands behind them.
#[tokio::test]
async fn a_row_that_the_application_has_locked_holds_up_its_line_alone() {
    let shop = Shop::postgres();
    shop.stage("lane", "'lane ' || (n % 3)", 9);
    let Shop::Postgres(database) = &shop else { panic!("no PostgreSQL") };
    let url = database.url();
    let script = "BEGIN; UPDATE acta_outbox SET options = NULL WHERE id = 5; SELECT pg_sleep(3); COMMIT";
    let locker = std::thread::spawn(move || sql(&url, script).unwrap());
    let sleeping =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    while sql(&database.url(), sleeping).unwrap() != ["1"] {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let source = shop.source();
    let rows = take_all(&*source).await;
    // 5 is in a line with 2 and 8.
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 7, 9]);
    source.remove("token", &rows.iter().collect::<Vec<_>>()).await.unwrap();
    assert!(!locker.is_finished(), "nobody has waited for it");
    locker.join().unwrap();
    assert_eq!(take_all(&*source).await.iter().map(|row| row.id).collect::<Vec<_>>(), [5, 8]);
}
