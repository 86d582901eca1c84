//! Jobs staged in the application's own transaction, by each driver, and carried by a relay.

use std::path::Path;
use std::sync::Arc;

use acta::outbox::{self, Dialect, Outbox, Relay, TableName};
use acta::{Job, Ledger};
use acta_core::Item;
use acta_core::store::JobFilter;
use acta_testkit::mariadb;
use acta_testkit::postgres::{Database, Server, sql};
use serde::{Deserialize, Serialize};
use sqlx::Connection as _;

#[derive(Debug, Serialize, Deserialize)]
struct Ship {
    order: u32,
}

impl Job for Ship {
    const NAME: &'static str = "ship";
    const QUEUE: &'static str = "transactions/orders";
    const MAX_ATTEMPTS: Option<u32> = Some(4);

    fn lane(&self) -> Option<String> {
        Some("north".into())
    }

    fn key(&self) -> Option<String> {
        Some(format!("INV-{}", self.order))
    }

    fn dedup_key(&self) -> Option<String> {
        Some(format!("order {}", self.order))
    }
}

fn orders(numbers: impl IntoIterator<Item = u32>) -> Vec<Ship> {
    numbers.into_iter().map(|order| Ship { order }).collect()
}

/// Carries what is there; every item that the ledger has then, oldest first.
async fn carried(source: &str, folder: &Path) -> Vec<Item> {
    let ledger = Ledger::open(&format!("sqlite:{}", folder.join("acta.db").display())).await.unwrap();
    ledger.define::<Ship>().await.unwrap();
    let source = outbox::open(source, &TableName::default()).unwrap();
    Relay::new(&ledger).source(Arc::clone(&source)).until_idle(true).run(std::future::pending()).await.unwrap();
    let standing = source.standing().await.unwrap();
    assert_eq!((standing.pending, standing.parked, standing.quarantined), (0, 0, 0));
    let page = ledger.store().jobs(JobFilter { limit: 100, ..JobFilter::default() }).await.unwrap();
    page.jobs.iter().rev().map(|found| Item::new(&found.namespace, &found.job)).collect()
}

/// As the type of the job says, and in the order of staging.
fn check(items: &[Item], numbers: impl IntoIterator<Item = u32>) {
    let numbers: Vec<u32> = numbers.into_iter().collect();
    assert_eq!(items.len(), numbers.len());
    for (item, number) in items.iter().zip(numbers) {
        let told = serde_json::to_value(item).unwrap();
        assert_eq!(told["payload"]["order"], number);
        assert_eq!((&told["name"], &told["lane"], &told["maxAttempts"]), (&"ship".into(), &"north".into(), &4.into()));
        assert_eq!(
            (&told["key"], &told["dedupKey"]),
            (&format!("INV-{number}").into(), &format!("order {number}").into())
        );
    }
}

fn sqlite_shop(folder: &Path) -> (String, std::path::PathBuf) {
    let path = folder.join("shop.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(&format!("PRAGMA journal_mode = wal; {}", Dialect::Sqlite.ddl(&TableName::default()))).unwrap();
    (format!("sqlite:{}", path.display()), path)
}

fn postgres_shop() -> Database {
    let database = Database::new(Server::shared_url(), None);
    sql(&database.url(), &Dialect::Postgres.ddl(&TableName::default())).unwrap();
    database
}

fn mysql_shop() -> mariadb::Database {
    let database = mariadb::Database::new(mariadb::Server::shared_url());
    mariadb::sql(&database.url(), &Dialect::Mysql.ddl(&TableName::default())).unwrap();
    database
}

#[tokio::test]
async fn by_rusqlite() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = sqlite_shop(folder.path());
    let mut db = rusqlite::Connection::open(path).unwrap();
    let outbox = Outbox::default();
    let committed = db.transaction().unwrap();
    outbox.blocking_stage_in(&committed, &orders(1..4)).unwrap();
    committed.commit().unwrap();
    let given_up = db.transaction().unwrap();
    outbox.blocking_stage_in(&given_up, &orders([9])).unwrap();
    given_up.rollback().unwrap();
    check(&carried(&source, folder.path()).await, 1..4);
}

#[tokio::test]
async fn by_sqlx_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = sqlite_shop(folder.path());
    let mut db = sqlx::SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    let outbox = Outbox::default();
    let mut committed = db.begin().await.unwrap();
    outbox.stage_in(&mut *committed, &Ship { order: 1 }).await.unwrap();
    outbox.stage_many_in(&mut *committed, &orders(2..4)).await.unwrap();
    committed.commit().await.unwrap();
    let mut given_up = db.begin().await.unwrap();
    outbox.stage_in(&mut *given_up, &Ship { order: 9 }).await.unwrap();
    given_up.rollback().await.unwrap();
    check(&carried(&source, folder.path()).await, 1..4);
}

#[tokio::test]
async fn by_sqlx_on_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let shop = postgres_shop();
    let mut db = sqlx::PgConnection::connect(&shop.url()).await.unwrap();
    let outbox = Outbox::default();
    let mut committed = db.begin().await.unwrap();
    outbox.stage_in(&mut *committed, &Ship { order: 1 }).await.unwrap();
    outbox.stage_many_in(&mut *committed, &orders(2..4)).await.unwrap();
    committed.commit().await.unwrap();
    let mut given_up = db.begin().await.unwrap();
    outbox.stage_in(&mut *given_up, &Ship { order: 9 }).await.unwrap();
    given_up.rollback().await.unwrap();
    check(&carried(&shop.url(), folder.path()).await, 1..4);
}

#[tokio::test]
async fn by_tokio_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let shop = postgres_shop();
    let (mut client, connection) = tokio_postgres::connect(&shop.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let outbox = Outbox::default();
    let mut committed = client.transaction().await.unwrap();
    outbox.stage_many_in(&mut committed, &orders(1..4)).await.unwrap();
    committed.commit().await.unwrap();
    let mut given_up = client.transaction().await.unwrap();
    outbox.stage_in(&mut given_up, &Ship { order: 9 }).await.unwrap();
    given_up.rollback().await.unwrap();
    check(&carried(&shop.url(), folder.path()).await, 1..4);
}

#[tokio::test]
async fn by_sqlx_on_mysql() {
    let folder = tempfile::tempdir().unwrap();
    let shop = mysql_shop();
    let mut db = sqlx::MySqlConnection::connect(&shop.url()).await.unwrap();
    let outbox = Outbox::default();
    let mut committed = db.begin().await.unwrap();
    outbox.stage_in(&mut *committed, &Ship { order: 1 }).await.unwrap();
    outbox.stage_many_in(&mut *committed, &orders(2..4)).await.unwrap();
    committed.commit().await.unwrap();
    let mut given_up = db.begin().await.unwrap();
    outbox.stage_in(&mut *given_up, &Ship { order: 9 }).await.unwrap();
    given_up.rollback().await.unwrap();
    check(&carried(&shop.url(), folder.path()).await, 1..4);
}

#[tokio::test]
async fn by_mysql_async() {
    use mysql_async::prelude::Queryable as _;
    let folder = tempfile::tempdir().unwrap();
    let shop = mysql_shop();
    let mut conn = mysql_async::Conn::from_url(shop.url()).await.unwrap();
    let outbox = Outbox::default();
    let mut committed = conn.start_transaction(mysql_async::TxOpts::default()).await.unwrap();
    outbox.stage_many_in(&mut committed, &orders(1..3)).await.unwrap();
    committed.commit().await.unwrap();
    let mut given_up = conn.start_transaction(mysql_async::TxOpts::default()).await.unwrap();
    outbox.stage_in(&mut given_up, &Ship { order: 9 }).await.unwrap();
    given_up.rollback().await.unwrap();
    // In a transaction that was begun by hand.
    conn.query_drop("BEGIN").await.unwrap();
    outbox.stage_in(&mut conn, &Ship { order: 3 }).await.unwrap();
    conn.query_drop("COMMIT").await.unwrap();
    check(&carried(&shop.url(), folder.path()).await, 1..4);
    conn.disconnect().await.unwrap();
}

/// A relay in the staging process needs no look of its own: it is woken behind the commit.
#[tokio::test]
async fn a_relay_of_the_same_process_is_woken() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = sqlite_shop(folder.path());
    let ledger = Ledger::open(&format!("sqlite:{}", folder.path().join("acta.db").display())).await.unwrap();
    let relay = Relay::new(&ledger).source(outbox::open(&source, &TableName::default()).unwrap());
    let waker = relay.waker();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async { drop(stopped.await) }));
    let mut db = rusqlite::Connection::open(path).unwrap();
    let transaction = db.transaction().unwrap();
    Outbox::default().blocking_stage_in(&transaction, &orders([1])).unwrap();
    transaction.commit().unwrap();
    waker.notify_waiters();
    let filter = JobFilter { limit: 10, ..JobFilter::default() };
    while ledger.store().jobs(filter.clone()).await.unwrap().jobs.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    drop(stop);
    running.await.unwrap().unwrap();
}

/// A job that no ledger would take is refused while the application can still do something about it; its transaction goes on.
#[tokio::test]
async fn what_is_wrong_is_refused_where_it_is_staged() {
    #[derive(Serialize, Deserialize)]
    struct Wrong;
    impl Job for Wrong {
        const NAME: &'static str = "wrong";
        const QUEUE: &'static str = "transactions/orders";

        fn lane(&self) -> Option<String> {
            Some("a\nb".into())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = sqlite_shop(folder.path());
    let mut db = rusqlite::Connection::open(path).unwrap();
    let transaction = db.transaction().unwrap();
    let refusal = Outbox::default().blocking_stage_in(&transaction, &[Wrong]).unwrap_err();
    assert!(refusal.to_string().contains("lane"), "{refusal}");
    Outbox::default().blocking_stage_in(&transaction, &orders([1])).unwrap();
    transaction.commit().unwrap();
    check(&carried(&source, folder.path()).await, [1]);
}
