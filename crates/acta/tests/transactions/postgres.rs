//! The drivers for PostgreSQL, and what only they can meet.

use std::time::{Duration, Instant};

use acta::{Enqueued, Job, Ledger, Result, State, Wake};
use acta_core::store::copy;
use deadpool_postgres::{Manager, Pool};
use sqlx::postgres::{PgPool, Postgres};
use tokio_postgres::{Client, NoTls};

use super::shop::{Place, Shop, on_postgres};
use super::{Crew, Ship, jobs, ship, state};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS orders (number integer NOT NULL)";

pub(crate) struct Sqlx {
    pub(crate) pool: PgPool,
    open: Option<sqlx::Transaction<'static, Postgres>>,
}

impl Sqlx {
    fn transaction(&mut self) -> &mut sqlx::Transaction<'static, Postgres> {
        self.open.as_mut().unwrap()
    }
}

impl Shop for Sqlx {
    async fn open(place: &Place) -> Self {
        let pool = PgPool::connect(&place.url).await.unwrap();
        sqlx::query(TABLE).execute(&pool).await.unwrap();
        Self { pool, open: None }
    }

    async fn begin(&mut self) {
        self.open = Some(self.pool.begin().await.unwrap());
    }

    async fn commit(&mut self) {
        self.open.take().unwrap().commit().await.unwrap();
    }

    async fn rollback(&mut self) {
        self.open.take().unwrap().rollback().await.unwrap();
    }

    async fn order(&mut self, number: u32) {
        let insert = sqlx::query("INSERT INTO orders (number) VALUES ($1)").bind(number.cast_signed());
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

/// The client itself, in a transaction that it has begun.
pub(crate) struct Tokio {
    client: Client,
}

impl Tokio {
    async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }
}

async fn connect(place: &Place) -> Client {
    let (client, connection) = tokio_postgres::connect(&place.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Shop for Tokio {
    async fn open(place: &Place) -> Self {
        let shop = Self { client: connect(place).await };
        shop.run(TABLE).await;
        shop
    }

    async fn begin(&mut self) {
        self.run("BEGIN").await;
    }

    async fn commit(&mut self) {
        self.run("COMMIT").await;
    }

    async fn rollback(&mut self) {
        self.run("ROLLBACK").await;
    }

    async fn order(&mut self, number: u32) {
        let number = number.cast_signed();
        self.client.execute("INSERT INTO orders (number) VALUES ($1)", &[&number]).await.unwrap();
    }

    async fn orders(&mut self) -> i64 {
        self.client.query_one("SELECT count(*) FROM orders", &[]).await.unwrap().get(0)
    }

    async fn enqueue<J: Job>(&mut self, ledger: &Ledger, job: &J) -> Result<(Enqueued, Wake)> {
        ledger.enqueue_in(&mut self.client, job).await
    }

    async fn enqueue_many(&mut self, ledger: &Ledger, jobs: &[Ship]) -> Result<(Vec<Enqueued>, Wake)> {
        ledger.enqueue_many_in(&mut self.client, jobs).await
    }
}

/// How long a transaction stays open.
fn hold() -> Duration {
    if std::env::var_os("ACTA_LONG").is_some() { Duration::from_mins(1) } else { Duration::from_secs(2) }
}

/// Two transactions that have enqueued into a lane stay open: whoever else enqueues there is served as ever. The one that
/// commits joins then, at the lane's end; the one that rolls back never was.
#[test]
fn an_open_transaction_delays_nobody_in_its_lane() {
    on_postgres(async |place: Place| {
        let ledger = place.ledger().await;
        let (mut kept, mut gone) = (Sqlx::open(&place).await, Tokio::open(&place).await);
        let crew = Crew::quick(&ledger);
        let (mut number, mut slowest) = (0, Duration::ZERO);
        for at in [0, 1] {
            number += 1;
            let began = Instant::now();
            ledger.enqueue(&ship("ada", number)).await.unwrap();
            crew.until(number as usize).await;
            if at == 0 {
                kept.begin().await;
                kept.order(1_000).await;
                gone.begin().await;
                gone.order(2_000).await;
            }
            assert!(began.elapsed() < Duration::from_secs(5), "without anything open: {:?}", began.elapsed());
        }
        let (added, wake) = kept.enqueue(&ledger, &ship("ada", 1_000)).await.unwrap();
        let (never, _wake) = gone.enqueue(&ledger, &ship("ada", 2_000)).await.unwrap();
        let opened = Instant::now();
        while opened.elapsed() < hold() {
            number += 1;
            let began = Instant::now();
            ledger.enqueue(&ship("ada", number)).await.unwrap();
            crew.until(number as usize).await;
            slowest = slowest.max(began.elapsed());
        }
        assert!(number > 10, "{number} orders in {:?}", opened.elapsed());
        assert!(slowest < Duration::from_secs(1), "one took {slowest:?}");
        assert_eq!(crew.ran(), (1..=number).collect::<Vec<_>>(), "in order, and none of the open ones");
        gone.rollback().await;
        kept.commit().await;
        wake.send().await;
        let ran = crew.until(number as usize + 1).await;
        assert_eq!(ran.last(), Some(&1_000));
        tokio::time::sleep(super::WHILE).await;
        assert_eq!(crew.end().await.len(), number as usize + 1);
        assert_eq!(state(&ledger, &added.id).await, State::Succeeded);
        assert!(ledger.job(&never.id).await.unwrap_err().is_not_found());
        assert_eq!((jobs(&ledger).await, kept.orders().await), (u64::from(number) + 1, 1));
    });
}

/// A transaction of tokio-postgres, and one of deadpool's, which derefs to it.
#[test]
fn a_transaction_is_a_caller_whoever_made_it() {
    on_postgres(async |place: Place| {
        let ledger = place.ledger().await;
        let mut client = connect(&place).await;
        let mut transaction = client.transaction().await.unwrap();
        ledger.prepare(&ship("ada", 1)).lane("own").enqueue_in(&mut transaction).await.unwrap().1.send().await;
        transaction.commit().await.unwrap();
        let pool = Pool::builder(Manager::new(place.url.parse().unwrap(), NoTls)).build().unwrap();
        let mut client = pool.get().await.unwrap();
        let mut transaction = client.transaction().await.unwrap();
        let (added, wake) = ledger.enqueue_in(&mut *transaction, &ship("ada", 2)).await.unwrap();
        transaction.commit().await.unwrap();
        // As in a server, whose tasks go from thread to thread.
        tokio::spawn(wake.send()).await.unwrap();
        ledger.enqueue_in(&mut **client, &ship("ada", 3)).await.unwrap().1.send().await;
        assert_eq!(jobs(&ledger).await, 3);
        assert!(added.created);
    });
}

/// Every byte of a payload, and all that can be said of a job, come through.
#[test]
fn what_is_said_comes_through() {
    on_postgres(async |place: Place| {
        let (ledger, mut client) = (place.ledger().await, connect(&place).await);
        let odd = Ship { by: Some("\u{0}\u{1F4E6}\\u0000\"~0~".into()), ..ship("ada", 1) };
        let said = ledger.prepare(&odd).lane("o'clock").key("k").priority(90).max_attempts(7);
        let said = said.delay(Duration::from_mins(10)).expires_in(Duration::from_mins(20));
        let said = said.lease(Duration::from_secs(5)).backoff(acta::Backoff::None);
        let (added, _wake) = said.enqueue_in(&mut client).await.unwrap();
        let job = ledger.job(&added.id).await.unwrap().job;
        assert_eq!(job.identity.payload.as_str(), serde_json::to_string(&odd).unwrap());
        assert_eq!((job.identity.lane.unwrap().as_str(), job.identity.key.unwrap().as_str()), ("o'clock", "k"));
        assert_eq!((job.standing.priority, job.standing.max_attempts), (90, 7));
        assert_eq!(job.standing.expires_at.unwrap().since_ms(job.standing.run_at.unwrap()), 600_000);
        assert_eq!((job.identity.lease.unwrap().as_millis(), job.identity.backoff), (5_000, Some(acta::Backoff::None)));
    });
}

/// A transaction that has used the name for the first time, by SQL, would wait for itself.
#[test]
fn a_name_that_the_transaction_itself_has_made_is_told() {
    on_postgres(async |place: Place| {
        let (ledger, mut shop) = (place.ledger().await, Tokio::open(&place).await);
        shop.begin().await;
        shop.run("SELECT acta.enqueue('orders', '1', name => 'ship')").await;
        let fault = shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap_err();
        assert!(fault.is_unavailable() && fault.to_string().contains("Ledger::define"), "{fault}");
        shop.commit().await;
        shop.begin().await;
        assert!(shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap().0.created);
        shop.commit().await;
        assert_eq!(jobs(&ledger).await, 2);
    });
}

/// What has arrived and not joined its lane yet is no contradiction, and goes along with a copy.
#[test]
fn a_copy_takes_along_what_has_just_arrived() {
    on_postgres(async |place: Place| {
        let (ledger, mut client) = (place.ledger().await, connect(&place).await);
        ledger.enqueue(&ship("ada", 1)).await.unwrap();
        for (customer, order) in [("ada", 2), ("bob", 3)] {
            ledger.enqueue_in(&mut client, &ship(customer, order)).await.unwrap().1.send().await;
        }
        assert_eq!(jobs(&ledger).await, 3);
        let (files, now) = (Place::sqlite(), ledger.clock().now());
        let copied = files.ledger().await;
        let names = (place.url.as_str(), files.url.as_str());
        copy(&**ledger.store(), &**copied.store(), names, now).await.unwrap();
        assert_eq!((jobs(&copied).await, jobs(&ledger).await), (3, 3));
        let crew = Crew::quick(&copied);
        let mut ran = crew.until(3).await;
        crew.end().await;
        ran.retain(|order| *order != 3);
        assert_eq!(ran, [1, 2]);
    });
}
