//! Ledgers for tests of the library, and workers that are started and ended. Each test uses some of it.
#![allow(dead_code, unused_imports, reason = "compiled into several tests, none of which uses all")]

mod outage;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use acta::testing::TestLedger;
use acta::{Clock, Context, Job, JobError, JobId, Ledger, Observed, State, Store, Timestamp, Worker};
use acta_core::shelf::MemoryStore;
use acta_core::{Item, ManualClock, Seeded};
use acta_store::SqliteStore;
use acta_store::sqlite::{Options, Synchronous};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use outage::Outage;

/// When every test begins: 2026-10-03T09:12:00Z.
const START: i64 = 1_791_018_720_000;
/// Nothing takes longer; what did not happen by then does not happen.
const PATIENCE: Duration = Duration::from_mins(10);

/// A ledger whose time the test moves, over a store that can be told to fail.
pub(crate) struct Bench {
    pub(crate) ledger: Ledger,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) outage: Arc<Outage>,
}

impl Bench {
    fn over(clock: Arc<ManualClock>, store: Arc<dyn Store>) -> Self {
        let outage = Arc::new(Outage::over(Arc::new(Observed::over(store))));
        let ledger = Ledger::by_clock(Arc::clone(&outage) as Arc<dyn Store>, Arc::clone(&clock) as Arc<dyn Clock>);
        Self { ledger, clock, outage }
    }

    /// The instant so many seconds from the beginning.
    pub(crate) fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(START + seconds * 1_000)
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.clock.advance_ms(seconds * 1_000);
    }

    pub(crate) async fn item(&self, id: &JobId) -> Item {
        let found = self.ledger.job(id).await.unwrap();
        Item::new(&found.namespace, &found.job)
    }

    pub(crate) async fn state(&self, id: &JobId) -> State {
        self.ledger.job(id).await.unwrap().job.standing.state
    }

    /// Waits until a job is in a state; looks after every call that is answered.
    pub(crate) async fn until(&self, id: &JobId, state: State) {
        timely(async {
            let mut answers = self.outage.answers();
            while self.state(id).await != state {
                answers.changed().await.unwrap();
            }
        })
        .await;
    }

    /// A worker of the queue `orders` that is quick to look.
    pub(crate) fn worker(&self) -> Worker {
        Worker::new(&self.ledger, "orders").poll(Duration::from_millis(10))
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(START)))
}

/// Runs a scenario in memory, on one thread, in a time that jumps to whatever is waited for.
pub(crate) fn memory<F: Future<Output = ()>>(scenario: impl FnOnce(Bench) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let clock = clock();
    let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>, Box::new(Seeded::new(1)));
    runtime.block_on(timely(scenario(Bench::over(clock, Arc::new(store)))));
}

/// Runs a scenario on SQLite, on two threads.
pub(crate) fn sqlite<F: Future<Output = ()>>(scenario: impl FnOnce(Bench) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let random = Some(Box::new(Seeded::new(1)) as Box<_>);
    let options = Options { synchronous: Synchronous::Normal, clock: Arc::clone(&clock) as Arc<dyn Clock>, random };
    let store = SqliteStore::open(folder.path().join("acta.db"), options).unwrap();
    runtime.block_on(timely(scenario(Bench::over(clock, Arc::new(store)))));
}

/// A test on each store for each scenario.
#[macro_export]
macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        mod memory {
            $(#[test]
            fn $scenario() {
                super::common::memory(super::$scenario);
            })*
        }
        mod sqlite {
            $(#[test]
            fn $scenario() {
                super::common::sqlite(super::$scenario);
            })*
        }
    };
}

/// Waits for what will happen.
pub(crate) async fn timely<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not happen")
}

/// A worker that works.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<acta::Result<()>>,
}

impl Running {
    pub(crate) fn start(worker: Worker) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(worker.run(async {
            let _ = stopped.await;
        }));
        Self { stop: Some(stop), task }
    }

    /// Begins its shutdown.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }

    /// Shuts it down and waits until it has ended: all results are settled by then.
    pub(crate) async fn end(mut self) {
        self.stop();
        timely(self.task).await.unwrap().unwrap();
    }
}

/// A job that is as simple as can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) customer: Option<String>,
}

impl Order {
    pub(crate) fn new(number: u32) -> Self {
        Self { number, customer: None }
    }

    pub(crate) fn of(customer: &str, number: u32) -> Self {
        Self { number, customer: Some(customer.into()) }
    }
}

impl Job for Order {
    const NAME: &'static str = "order";
    const QUEUE: &'static str = "orders";
    const MAX_ATTEMPTS: Option<u32> = Some(3);
    const BACKOFF: Option<acta::Backoff> = Some(acta::Backoff::None);
    const LEASE: Option<Duration> = Some(Duration::from_mins(1));

    fn lane(&self) -> Option<String> {
        self.customer.clone()
    }
}
