//! What an outbox costs its database and the application, in PostgreSQL and SQLite. MariaDB is in `outbox_mysql`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acta_core::relay::{Row, Source};
use acta_core::store::{Dedup, Deliver, Delivered, Deliveries, NewJob};
use acta_core::{Json, Label, Span, Store};
use acta_store::PostgresStore;
use acta_store::outbox::{Dialect, TableName, open};
use acta_store::postgres::Options;
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

    fn looks(&self) -> i64 {
        let Self::Postgres(database) = self else { panic!("no PostgreSQL") };
        looks(database, "acta_outbox")
    }
}

/// How many rows and entries of indexes of a table PostgreSQL has looked at so far; what a connection has done is told when it ends.
fn looks(database: &Database, table: &str) -> i64 {
    let all = format!(
        "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = '{table}')
              + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '{table}')"
    );
    let mut before = -1;
    loop {
        let now: i64 = sql(&database.url(), &all).unwrap()[0].parse().unwrap();
        if now == before {
            return now;
        }
        before = now;
        std::thread::park_timeout(Duration::from_millis(400));
    }
}

/// All that may be delivered now.
async fn all(source: &dyn Source) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..200 {
        let in_hand: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let look = source.look(1_000, &in_hand).await.unwrap();
        if !look.has_found {
            return rows;
        }
        rows.extend(look.rows);
    }
    panic!("there is always something more");
}

/// A head that waits, with a long line behind it, many short lines that wait, and rows in quarantine.
fn crowd(shop: &Shop, count: u32) {
    shop.stage("lane, status, until_ms", "'stuck', 1, 99999999999999", 1);
    shop.stage("lane, status", "'stuck', 2", count);
    shop.stage("lane, status, until_ms", "'lane ' || (n % 200), 1, 99999999999999", 200);
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
    let rows = all(&*source).await;
    assert_eq!(rows.len(), 200);
    assert_eq!(source.remove(&rows).await.unwrap(), rows.len() as u64);
    drop(source);
    let used = shop.looks() - before;
    assert!((200..12_000).contains(&used), "a look at {used} rows for 200");
    assert_eq!(shop.count("status = 2"), 120_000);
}

/// What the planner knows of the table may be as old as it likes: whoever looks at a long backlog sees no more of it than it takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_costs_what_it_takes_whatever_the_planner_knows() {
    // Nothing was there when the table was analysed; or a crowd that stays, and nothing else.
    for (is_crowded, analyse) in [(false, ""), (true, "DELETE FROM acta_outbox WHERE status = 0; VACUUM ANALYZE")] {
        let shop = Shop::postgres();
        if is_crowded {
            crowd(&shop, 20_000);
        }
        analyse.split(';').for_each(|script| shop.run(script));
        shop.stage("lane", "'free ' || (n % 200)", 20_000);
        let before = shop.looks();
        let source = shop.source();
        assert_eq!(source.look(1_000, &[]).await.unwrap().rows.len(), 1_000);
        drop(source);
        let used = shop.looks() - before;
        assert!((1_000..4_000).contains(&used), "crowded: {is_crowded}; a look at {used} rows for 1,000");
    }
}

/// The planner knows nothing yet of a ledger that has just begun: a delivery is looked up by its key all the same, and so is a job's.
#[tokio::test(flavor = "multi_thread")]
async fn a_young_ledger_looks_at_no_other_key() {
    let database = Database::new(Server::shared_url(), None);
    let store = PostgresStore::new(&database.url().parse().unwrap(), Options::default()).unwrap();
    let key = |text: String| Label::new("key", &text).unwrap();
    let deliver = |deliveries| Deliver { namespace: "plain".parse().unwrap(), deliveries };
    store.migrate().await.unwrap();
    sql(&database.url(), "ALTER TABLE acta.keys SET (autovacuum_enabled = false)").unwrap();
    for call in 0..20 {
        let arrival = |nth: u32| {
            let dedup = Some(Dedup { key: key(format!("job {call} {nth}")), while_live: false });
            (key(format!("delivery {call} {nth}")), NewJob { dedup, ..NewJob::new(Json::new("1").unwrap()) })
        };
        let deliveries = Deliveries::Arrive((0..500).map(arrival).collect());
        let answers = store.deliver(deliver(deliveries)).await.unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, Delivered::Now { created: true, .. })));
    }
    drop(store);
    let used = looks(&database, "keys");
    assert!((10_000..100_000).contains(&used), "a look at {used} keys for 20,000");
}

#[tokio::test]
async fn an_application_on_sqlite_hardly_waits_for_what_stays() {
    let shop = Shop::sqlite();
    crowd(&shop, 100_000);
    let source = shop.source();
    let begun = Instant::now();
    let rows = all(&*source).await;
    assert_eq!(rows.len(), 200);
    assert_eq!(source.remove(&rows).await.unwrap(), rows.len() as u64);
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
            assert!(source.look(1_000, &[]).await.unwrap().rows.is_empty());
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
            let rows = all(&*source).await;
            if rows.is_empty() {
                break;
            }
            arrived += rows.len();
            assert_eq!(source.remove(&rows).await.unwrap(), rows.len() as u64);
        }
        assert_eq!((arrived, shop.count("true")), (2_400, 0));
    }
}

/// An open transaction of the application's holds up nothing but the end of the rows that it has changed.
#[tokio::test]
async fn a_row_that_the_application_has_locked_is_removed_later() {
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
    let rows = all(&*source).await;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(source.remove(&rows).await.unwrap(), 8);
    assert!(!locker.is_finished(), "nobody has waited for it");
    locker.join().unwrap();
    let left = all(&*source).await;
    assert_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), [5]);
    assert_eq!(source.remove(&left).await.unwrap(), 1);
}

/// One relay has an outbox, as long as it says so; rows may have arrived since another one was at work.
#[tokio::test]
async fn one_relay_has_an_outbox_to_itself() {
    for shop in Shop::all() {
        let [source, other] = [shop.source(), shop.source()];
        let short = Span::of(Duration::from_millis(400));
        let first = source.hold("first", short, false).await.unwrap().unwrap();
        assert!(first.now.since_ms(first.since) < 100, "nobody was here before");
        assert_eq!(other.hold("second", HOLD, false).await.unwrap(), None);
        assert_eq!(source.standing().await.unwrap().relay.unwrap().0, "first");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let again = source.hold("first", short, false).await.unwrap().unwrap();
        assert_eq!(again.since, first.since);
        let clear = source.hold("first", short, true).await.unwrap().unwrap();
        assert!(clear.since > first.since, "all that had arrived is gone");
        assert_eq!(other.hold("second", HOLD, true).await.unwrap(), None, "its time has begun anew");
        tokio::time::sleep(Duration::from_millis(450)).await;
        assert_eq!(source.standing().await.unwrap().relay, None);
        let second = other.hold("second", HOLD, true).await.unwrap().unwrap();
        assert_eq!(second.since, clear.since, "what the first one has left may have arrived");
        assert_eq!(source.hold("first", short, true).await.unwrap(), None);
        source.let_go("first").await.unwrap();
        assert_eq!(source.hold("first", short, true).await.unwrap(), None, "that was not its own");
        other.let_go("second").await.unwrap();
        assert_eq!(source.hold("first", short, true).await.unwrap().unwrap().since, clear.since);
    }
}

/// A number that was given again is another row.
#[tokio::test]
async fn what_has_taken_the_place_of_a_row_stays() {
    for shop in Shop::all() {
        shop.stage("lane", "'a'", 2);
        let source = shop.source();
        let rows = all(&*source).await;
        shop.run("UPDATE acta_outbox SET message = 'another' WHERE id = 1");
        assert_eq!(source.remove(&rows).await.unwrap(), 1);
        assert_eq!(shop.count("id = 1"), 1);
    }
}

/// What stands behind a row that waits is seen once, and comes when that goes; what is seen to stand before it waits for nobody.
#[tokio::test]
async fn what_stands_behind_a_row_comes_when_it_goes() {
    for shop in Shop::all() {
        shop.stage("lane", "'a'", 3);
        let source = shop.source();
        let rows = all(&*source).await;
        source.defer(&rows[0], &[rows[1].id], Span::of(Duration::from_millis(300)), "no").await.unwrap();
        let (first, again) = (source.look(10, &[]).await.unwrap(), source.look(10, &[]).await.unwrap());
        assert!(first.rows.is_empty() && first.has_found && !again.has_found, "they are parked, and cost nothing then");
        assert_eq!((shop.count("status = 1"), shop.count("status = 2")), (1, 2));
        tokio::time::sleep(Duration::from_millis(700)).await;
        let head = source.look(10, &[]).await.unwrap().rows;
        assert_eq!((head.len(), head[0].id, head[0].refusals, head[0].has_behind), (1, rows[0].id, 1, true));
        assert_eq!(source.remove(&head).await.unwrap(), 1);
        assert_eq!((shop.count("status = 0"), shop.count("status = 2")), (2, 0));
    }
}

/// What one look has in hand the next one leaves out, and nothing else.
#[tokio::test]
async fn what_is_in_hand_is_not_seen_again() {
    for shop in Shop::all() {
        shop.stage("lane", "'lane ' || (n % 3)", 50);
        let source = shop.source();
        let first = source.look(20, &[]).await.unwrap().rows;
        shop.run("DELETE FROM acta_outbox WHERE id = 3");
        let in_hand: Vec<i64> = first.iter().map(|row| row.id).filter(|id| *id != 7).collect();
        let second = source.look(20, &in_hand).await.unwrap().rows;
        let wanted: Vec<i64> = std::iter::once(7).chain(21..40).collect();
        assert_eq!(second.iter().map(|row| row.id).collect::<Vec<_>>(), wanted);
    }
}
