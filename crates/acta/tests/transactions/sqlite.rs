//! The drivers for SQLite, and what only they can meet.

use std::time::{Duration, Instant};

use acta::{Enqueued, Job, Ledger, Result, Wake};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqlitePool};

use super::shop::{Place, Shop, on_sqlite};
use super::{Crew, Ship, jobs, ship};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS orders (number INTEGER NOT NULL)";

pub(crate) struct Sqlx {
    pub(crate) pool: SqlitePool,
    open: Option<sqlx::Transaction<'static, Sqlite>>,
}

impl Sqlx {
    fn transaction(&mut self) -> &mut sqlx::Transaction<'static, Sqlite> {
        self.open.as_mut().unwrap()
    }
}

impl Shop for Sqlx {
    async fn open(place: &Place) -> Self {
        let options = SqliteConnectOptions::new().filename(place.file("acta.db"));
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::query(TABLE).execute(&pool).await.unwrap();
        Self { pool, open: None }
    }

    async fn begin(&mut self) {
        self.open = Some(self.pool.begin_with("BEGIN IMMEDIATE").await.unwrap());
    }

    async fn commit(&mut self) {
        self.open.take().unwrap().commit().await.unwrap();
    }

    async fn rollback(&mut self) {
        self.open.take().unwrap().rollback().await.unwrap();
    }

    async fn order(&mut self, number: u32) {
        let insert = sqlx::query("INSERT INTO orders (number) VALUES (?)").bind(number);
        insert.execute(&mut **self.transaction()).await.unwrap();
    }

    async fn orders(&mut self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&self.pool).await.unwrap()
    }

    async fn enqueue<J: Job>(&mut self, ledger: &Ledger, job: &J) -> Result<(Enqueued, Wake)> {
        ledger.enqueue_in(&mut **self.transaction(), job).await
    }

    async fn enqueue_many(&mut self, ledger: &Ledger, jobs: &[Ship]) -> Result<(Vec<Enqueued>, Wake)> {
        ledger.enqueue_many_in(&mut **self.transaction(), jobs).await
    }
}

pub(crate) struct Rusqlite {
    /// Is there until the test's process ends, so that a transaction can be kept beside it.
    connection: &'static Connection,
    open: Option<Transaction<'static>>,
}

impl Shop for Rusqlite {
    async fn open(place: &Place) -> Self {
        let connection = Connection::open(place.file("acta.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection.execute_batch(TABLE).unwrap();
        Self { connection: Box::leak(Box::new(connection)), open: None }
    }

    async fn begin(&mut self) {
        self.open = Some(Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate).unwrap());
    }

    async fn commit(&mut self) {
        self.open.take().unwrap().commit().unwrap();
    }

    async fn rollback(&mut self) {
        self.open.take().unwrap().rollback().unwrap();
    }

    async fn order(&mut self, number: u32) {
        self.open.as_ref().unwrap().execute("INSERT INTO orders (number) VALUES (?)", [number]).unwrap();
    }

    async fn orders(&mut self) -> i64 {
        self.connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
    }

    async fn enqueue<J: Job>(&mut self, ledger: &Ledger, job: &J) -> Result<(Enqueued, Wake)> {
        ledger.blocking_enqueue_in(self.open.as_ref().unwrap(), job)
    }

    async fn enqueue_many(&mut self, ledger: &Ledger, jobs: &[Ship]) -> Result<(Vec<Enqueued>, Wake)> {
        ledger.blocking_enqueue_many_in(self.open.as_ref().unwrap(), jobs)
    }
}

/// A transaction that has looked before somebody else wrote can't write any more; it is told how to begin.
#[test]
fn one_that_has_read_an_older_state_is_told_to_begin_otherwise() {
    on_sqlite(async |place: Place| {
        let (ledger, shop) = (place.ledger().await, Sqlx::open(&place).await);
        let mut transaction = shop.pool.begin().await.unwrap();
        let _: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&mut *transaction).await.unwrap();
        ledger.enqueue(&ship("ada", 1)).await.unwrap();
        let fault = ledger.enqueue_in(&mut *transaction, &ship("ada", 2)).await.unwrap_err();
        assert!(fault.is_unavailable() && fault.to_string().contains("BEGIN IMMEDIATE"), "{fault}");
        transaction.rollback().await.unwrap();
        assert_eq!(jobs(&ledger).await, 1);
    });
}

/// A plain BEGIN does where the enqueue, or another write, comes first.
#[test]
fn a_deferred_transaction_takes_its_turn_with_the_enqueue() {
    on_sqlite(async |place: Place| {
        let (ledger, shop) = (place.ledger().await, Sqlx::open(&place).await);
        let crew = Crew::quick(&ledger);
        for order in 0..100 {
            let (ledger, pool) = (ledger.clone(), shop.pool.clone());
            // As in a server, whose tasks go from thread to thread.
            let task = tokio::spawn(async move {
                let mut transaction = pool.begin().await.unwrap();
                let (_, wake) = ledger.enqueue_in(&mut *transaction, &ship("ada", order)).await.unwrap();
                transaction.commit().await.unwrap();
                wake.send().await;
            });
            task.await.unwrap();
        }
        assert_eq!(crew.until(100).await, (0..100).collect::<Vec<_>>());
        crew.end().await;
        assert_eq!(jobs(&ledger).await, 100);
    });
}

/// Without a transaction of the caller's, a call is one of its own.
#[test]
fn a_bare_connection_adds_all_or_none() {
    on_sqlite(async |place: Place| {
        let (ledger, shop) = (place.ledger().await, Sqlx::open(&place).await);
        let mut connection = shop.pool.acquire().await.unwrap();
        let many: Vec<Ship> = (0..500).map(|order| ship(&format!("customer {}", order % 7), order)).collect();
        let (added, _wake) = ledger.enqueue_many_in(&mut *connection, &many).await.unwrap();
        assert!(added.iter().all(|added| added.created));
        assert_eq!(jobs(&ledger).await, 500);
        let crew = Crew::quick(&ledger);
        crew.until(500).await;
        crew.end().await;
        assert_eq!(jobs(&ledger).await, 500);
    });
}

/// Whoever stops waiting in the midst leaves nothing half done behind.
#[test]
fn a_call_that_is_dropped_leaves_nothing() {
    on_sqlite(async |place: Place| {
        let (ledger, shop) = (place.ledger().await, Sqlx::open(&place).await);
        let many: Vec<Ship> = (0..500).map(|order| ship(&format!("customer {}", order % 7), order)).collect();
        let began = Instant::now();
        let mut transaction = shop.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let _ = ledger.enqueue_many_in(&mut *transaction, &many).await.unwrap();
        transaction.rollback().await.unwrap();
        let whole = began.elapsed();
        let mut dropped = 0;
        for tenth in 1..10 {
            let mut transaction = shop.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
            let call = ledger.enqueue_many_in(&mut *transaction, &many);
            if tokio::time::timeout(whole * tenth / 10, call).await.is_ok() {
                transaction.rollback().await.unwrap();
                continue;
            }
            dropped += 1;
            ledger.enqueue_in(&mut *transaction, &ship("ada", 1_000 + tenth)).await.unwrap().1.send().await;
            transaction.commit().await.unwrap();
            assert_eq!(jobs(&ledger).await, dropped, "dropped after {tenth} tenths of {whole:?}");
        }
        assert!(dropped > 2, "{dropped}");
    });
}
