//! Jobs in the application's own transaction: the same scenarios with every driver, on the real databases.

#[path = "transactions/postgres.rs"]
mod postgres;
#[path = "transactions/refused.rs"]
mod refused;
#[path = "transactions/shop.rs"]
mod shop;
#[path = "transactions/sqlite.rs"]
mod sqlite;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acta::{Context, Job, JobError, JobId, Ledger, State, Worker};
use acta_core::store::{Enqueue, NewJob, QueueFilter};
use acta_core::{Name, audit};
use serde::{Deserialize, Serialize};
use shop::{Place, Shop};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What did not happen by then does not happen.
const PATIENCE: Duration = Duration::from_secs(30);
/// What must not happen has had so long to happen: some thirty polls.
const WHILE: Duration = Duration::from_millis(300);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ship {
    order: u32,
    customer: String,
    #[serde(default)]
    by: Option<String>,
}

impl Job for Ship {
    const NAME: &'static str = "ship";
    const QUEUE: &'static str = "orders";
    const MAX_ATTEMPTS: Option<u32> = Some(3);

    fn lane(&self) -> Option<String> {
        Some(self.customer.clone())
    }

    fn dedup_key(&self) -> Option<String> {
        Some(format!("order-{}", self.order))
    }
}

/// A type whose name differs from another's by case alone.
#[derive(Serialize, Deserialize)]
struct Shout;

impl Job for Shout {
    const NAME: &'static str = "SHIP";
    const QUEUE: &'static str = "fresh";
}

fn ship(customer: &str, order: u32) -> Ship {
    Ship { order, customer: customer.into(), by: None }
}

/// A worker of the queue, and what its handler has run, in order.
struct Crew {
    ran: Arc<Mutex<Vec<u32>>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<acta::Result<()>>,
}

impl Crew {
    fn start(ledger: &Ledger, poll: Duration) -> Self {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&ran);
        let handler = move |ship: Ship, _: Context| {
            kept.lock().unwrap().push(ship.order);
            async { Ok::<_, JobError>(()) }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(ledger, "orders").poll(poll).handle(handler);
        let task = tokio::spawn(worker.run(async {
            let _ = stopped.await;
        }));
        Self { ran, stop, task }
    }

    fn quick(ledger: &Ledger) -> Self {
        Self::start(ledger, Duration::from_millis(10))
    }

    fn ran(&self) -> Vec<u32> {
        self.ran.lock().unwrap().clone()
    }

    /// Waits until it has run so many.
    async fn until(&self, count: usize) -> Vec<u32> {
        let ran = async {
            while self.ran().len() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ran).await.unwrap_or_else(|_| panic!("it has run {:?}", self.ran()));
        self.ran()
    }

    async fn end(self) -> Vec<u32> {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
        self.ran.lock().unwrap().clone()
    }
}

async fn state(ledger: &Ledger, id: &JobId) -> State {
    ledger.job(id).await.unwrap().job.standing.state
}

/// How many jobs there are. On the way: the ledger contradicts itself nowhere.
async fn jobs(ledger: &Ledger) -> u64 {
    let mut jobs = 0;
    for (queue, tallies) in ledger.store().queues(QueueFilter::default()).await.unwrap().queues {
        let contents = ledger.store().export(Some(queue.namespace)).await.unwrap().contents.unwrap();
        assert_eq!(audit::contradictions(&contents, &tallies), []);
        jobs += tallies.values().sum::<u64>();
    }
    jobs
}

async fn a_committed_job_is_there_with_its_order<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    shop.begin().await;
    shop.order(1).await;
    let (added, wake) = shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap();
    assert!(added.created && !added.payload_differs);
    assert!(ledger.job(&added.id).await.unwrap_err().is_not_found(), "nobody sees it yet");
    shop.commit().await;
    wake.send().await;
    assert_eq!((shop.orders().await, jobs(&ledger).await), (1, 1));
    let job = ledger.job(&added.id).await.unwrap().job;
    assert_eq!(job.identity.payload.as_str(), r#"{"order":1,"customer":"ada","by":null}"#);
    assert_eq!((job.identity.lane.unwrap().as_str(), job.standing.max_attempts), ("ada", 3));
    assert_eq!(job.identity.dedup_key.unwrap().as_str(), "order-1");
    let crew = Crew::quick(&ledger);
    assert_eq!(crew.until(1).await, [1]);
    crew.end().await;
    assert_eq!(state(&ledger, &added.id).await, State::Succeeded);
    assert_eq!(jobs(&ledger).await, 1);
}

async fn one_that_rolls_back_leaves_nothing<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    shop.begin().await;
    shop.order(1).await;
    let (gone, _wake) = shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap();
    shop.rollback().await;
    assert_eq!((shop.orders().await, jobs(&ledger).await), (0, 0));
    assert!(ledger.job(&gone.id).await.unwrap_err().is_not_found());
    // Its key is free, its lane is empty, and its definition is registered all the same.
    let added = ledger.enqueue(&ship("ada", 1)).await.unwrap();
    assert!(added.created && added.state == State::Ready, "{added:?}");
    assert_eq!(ledger.job(&added.id).await.unwrap().job.standing.max_attempts, 3);
    let crew = Crew::quick(&ledger);
    assert_eq!(crew.until(1).await, [1]);
    crew.end().await;
    assert_eq!(jobs(&ledger).await, 1);
}

async fn no_handler_starts_before_the_commit<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    let crew = Crew::quick(&ledger);
    ledger.enqueue(&ship("ada", 1)).await.unwrap();
    crew.until(1).await;
    shop.begin().await;
    shop.order(2).await;
    let (added, wake) = shop.enqueue(&ledger, &ship("ada", 2)).await.unwrap();
    tokio::time::sleep(WHILE).await;
    assert_eq!(crew.ran(), [1], "the worker is there, and sees nothing");
    shop.commit().await;
    wake.send().await;
    assert_eq!(crew.until(2).await, [1, 2]);
    crew.end().await;
    assert_eq!(state(&ledger, &added.id).await, State::Succeeded);
}

/// Workers that would look by themselves in a minute, in this process and in another one.
async fn waiting_workers_start_at_once<S: Shop>(place: Place) {
    let (ledger, other, mut shop) = (place.ledger().await, place.ledger().await, S::open(&place).await);
    for (order, at) in [(1, &ledger), (2, &other)] {
        let crew = Crew::start(at, Duration::from_mins(1));
        // It has found nothing, and listens.
        tokio::time::sleep(WHILE).await;
        shop.begin().await;
        shop.order(order).await;
        let (_, wake) = shop.enqueue(&ledger, &ship("ada", order)).await.unwrap();
        shop.commit().await;
        wake.send().await;
        assert_eq!(crew.until(1).await, [order]);
        crew.end().await;
    }
}

async fn a_second_job_of_a_key_is_answered_with_the_first<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    let first = ledger.enqueue(&ship("ada", 1)).await.unwrap();
    shop.begin().await;
    shop.order(1).await;
    let (again, _wake) = shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap();
    assert_eq!((&again.id, again.created, again.payload_differs), (&first.id, false, false));
    assert_eq!(again.state, State::Ready);
    let other = Ship { by: Some("plane".into()), ..ship("ada", 1) };
    let two = ship("ada", 2);
    let (answers, _wake) = shop.enqueue_many(&ledger, &[two.clone(), other, two]).await.unwrap();
    assert_eq!(answers.iter().map(|answer| answer.created).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!((&answers[1].id, answers[1].payload_differs), (&first.id, true));
    assert_eq!((&answers[2].id, answers[2].payload_differs), (&answers[0].id, false));
    shop.commit().await;
    assert_eq!(jobs(&ledger).await, 2);
    let crew = Crew::quick(&ledger);
    crew.until(2).await;
    crew.end().await;
    // One that has ended holds its key, too.
    shop.begin().await;
    let (ended, _wake) = shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap();
    shop.commit().await;
    assert_eq!((ended.id, ended.created, ended.state), (first.id, false, State::Succeeded));
}

async fn jobs_of_a_lane_keep_their_order<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    ledger.enqueue(&ship("ada", 1)).await.unwrap();
    shop.begin().await;
    shop.order(2).await;
    let (added, _wake) = shop.enqueue_many(&ledger, &[ship("ada", 2), ship("ada", 3)]).await.unwrap();
    let (bob, _wake) = shop.enqueue(&ledger, &ship("bob", 4)).await.unwrap();
    shop.commit().await;
    ledger.enqueue(&ship("ada", 5)).await.unwrap();
    assert_eq!(state(&ledger, &added[1].id).await, State::Blocked);
    let crew = Crew::quick(&ledger);
    crew.until(5).await;
    let ran = crew.end().await;
    let of_ada: Vec<u32> = ran.iter().copied().filter(|order| *order != 4).collect();
    assert_eq!(of_ada, [1, 2, 3, 5], "{ran:?}");
    assert_eq!(state(&ledger, &bob.id).await, State::Succeeded);
    assert_eq!(jobs(&ledger).await, 5);
}

/// The first that the ledger ever hears of the type, queue and lane, from a transaction that has written already.
async fn the_first_of_a_type_may_come_in_a_transaction<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    shop.begin().await;
    shop.order(1).await;
    let began = std::time::Instant::now();
    let (_, wake) = shop.enqueue(&ledger, &ship("ada", 1)).await.unwrap();
    shop.commit().await;
    wake.send().await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "nothing waits for the caller's own commit: {:?}",
        began.elapsed()
    );
    // Somebody who knows the name alone gets what the type says.
    let job = NewJob { name: Some(Name::new("name", "ship").unwrap()), ..NewJob::new(acta::Json::null()) };
    let enqueue = Enqueue { namespace: "orders".parse().unwrap(), jobs: vec![job] };
    let added = ledger.store().enqueue(enqueue).await.unwrap().remove(0);
    assert_eq!(ledger.job(&added.id).await.unwrap().job.standing.max_attempts, 3);
}

async fn what_is_refused_leaves_the_transaction_as_it_was<S: Shop>(place: Place) {
    let (ledger, mut shop) = (place.ledger().await, S::open(&place).await);
    shop.begin().await;
    shop.order(1).await;
    let fault = shop.enqueue(&ledger, &ship(&"x".repeat(600), 1)).await.unwrap_err();
    assert!(fault.is_invalid(), "{fault}");
    let fault = shop.enqueue_many(&ledger, &[ship("ada", 2), ship("", 3)]).await.unwrap_err();
    assert!(fault.to_string().starts_with("element 1:"), "{fault}");
    let (none, _wake) = shop.enqueue_many(&ledger, &[]).await.unwrap();
    assert_eq!(none, []);
    shop.enqueue(&ledger, &ship("ada", 4)).await.unwrap().1.send().await;
    // What only the ledger can refuse.
    let fault = shop.enqueue(&ledger, &Shout).await.unwrap_err();
    assert!(fault.is_invalid() && fault.to_string().contains("only by case"), "{fault}");
    shop.commit().await;
    assert_eq!((shop.orders().await, jobs(&ledger).await), (1, 1));
    assert_eq!(
        ledger.store().queues(QueueFilter::default()).await.unwrap().queues.len(),
        1,
        "the queue of the refused one was not made"
    );
}

macro_rules! with_every_driver {
    ($($scenario:ident),* $(,)?) => {
        mod sqlx_sqlite { $(#[test] fn $scenario() { super::shop::on_sqlite(super::$scenario::<super::sqlite::Sqlx>); })* }
        mod rusqlite { $(#[test] fn $scenario() { super::shop::on_sqlite(super::$scenario::<super::sqlite::Rusqlite>); })* }
        mod sqlx_postgres { $(#[test] fn $scenario() { super::shop::on_postgres(super::$scenario::<super::postgres::Sqlx>); })* }
        mod tokio_postgres { $(#[test] fn $scenario() { super::shop::on_postgres(super::$scenario::<super::postgres::Tokio>); })* }
    };
}

with_every_driver! {
    a_committed_job_is_there_with_its_order,
    one_that_rolls_back_leaves_nothing,
    no_handler_starts_before_the_commit,
    waiting_workers_start_at_once,
    a_second_job_of_a_key_is_answered_with_the_first,
    jobs_of_a_lane_keep_their_order,
    the_first_of_a_type_may_come_in_a_transaction,
    what_is_refused_leaves_the_transaction_as_it_was,
}
