//! For tests of applications: a ledger in memory whose time is moved by hand.
//!
//! Nothing runs by itself here. A test enqueues, lets a worker's handlers run what can be claimed, moves the time, and
//! looks at what came of it, all in its own order.

use std::sync::Arc;
use std::time::Duration;

use acta_core::shelf::MemoryStore;
use acta_core::store::{Claim, ClaimOutcome, Claimant, JobFilter, Outcome, Settlement, Wave};
use acta_core::worker::Ticket;
use acta_core::{Clock, Item, JobId, Label, ManualClock, Result, Seeded, Span, State, Store, Timestamp};
use tokio::sync::watch;

use crate::handler::panicked;
use crate::job::{Job, name_of, namespace_of};
use crate::ledger::Ledger;
use crate::worker::Worker;

/// When the time of a test begins: 2026-01-01T00:00:00Z.
const START_MS: i64 = 1_767_225_600_000;
/// No test runs more jobs in one go; a queue that is not empty by then fills itself.
const MOST_JOBS: usize = 10_000;

/// A ledger in memory, and its time.
#[derive(Debug)]
pub struct TestLedger {
    ledger: Ledger,
    clock: Arc<ManualClock>,
}

impl Default for TestLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl TestLedger {
    /// An empty ledger.
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START_MS)));
        let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>, Box::new(Seeded::new(1)));
        let store: Arc<dyn Store> = Arc::new(store);
        let ledger = Ledger::by_clock(store, Arc::clone(&clock) as Arc<dyn Clock>);
        Self { ledger, clock }
    }

    /// The ledger, to be given to the application.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The instant now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the time.
    pub fn advance(&self, duration: Duration) {
        self.clock.advance_ms(Span::of(duration).as_millis());
    }

    /// Runs what can be claimed now by the handlers of `worker`, one job after the other, until there is nothing; the
    /// jobs and their outcomes, in order. What waits, or is put off, runs after the time was moved.
    ///
    /// # Panics
    /// If it has run 10,000 jobs and there are more.
    pub async fn run(&self, worker: &Worker) -> Result<Vec<(JobId, Outcome)>> {
        let (handlers, namespace) = worker.set_up()?;
        for definition in handlers.definitions() {
            self.ledger.register(definition.clone()).await?;
        }
        let store = self.ledger.store();
        let mut ran = Vec::new();
        loop {
            let robot = Label::new("robot", "test")?;
            let claim = Claim { names: Some(handlers.names()), ..Claim::one(namespace.clone(), robot) };
            let ClaimOutcome::Claimed(jobs) = store.claim(claim).await?.outcome else { return Ok(ran) };
            for job in jobs {
                assert!(ran.len() < MOST_JOBS, "{MOST_JOBS} jobs have run, and there are more");
                let Ticket { id, fence } = Ticket::of(&job);
                let (_told, word) = watch::channel(None);
                let running = handlers.run(self.ledger.desk(namespace.clone()), job, word);
                let outcome = tokio::spawn(running).await.unwrap_or_else(panicked);
                let claimant = Claimant::fence(fence);
                let settlement = Settlement { id: id.clone(), claimant, outcome: outcome.clone() };
                let wave = Wave { namespace: namespace.clone(), settlements: vec![settlement] };
                for answer in store.settle(wave).await? {
                    answer?;
                }
                ran.push((id, outcome));
            }
        }
    }

    /// All live jobs of a type, in the order in which they were enqueued.
    ///
    /// # Panics
    /// If a payload of that name is none of the type.
    pub async fn enqueued<J: Job>(&self) -> Result<Vec<J>> {
        let (namespace, name) = (namespace_of::<J>()?, name_of::<J>()?);
        let mut filter = JobFilter { namespace: Some(namespace), limit: 1_000, ..JobFilter::default() };
        let mut found = Vec::new();
        loop {
            let page = match self.ledger.store().jobs(filter.clone()).await {
                // Nothing was ever enqueued there.
                Err(fault) if fault.is_not_found() => return Ok(Vec::new()),
                page => page?,
            };
            found.extend(page.jobs.into_iter().map(|found| found.job));
            filter.after_row = page.next;
            if page.next.is_none() {
                break;
            }
        }
        let is_wanted =
            |job: &acta_core::Job| !job.standing.state.is_final() && job.identity.name.as_ref() == Some(&name);
        let read = |job: &acta_core::Job| {
            let payload = job.identity.payload.as_str();
            serde_json::from_str(payload).unwrap_or_else(|fault| panic!("{payload} is no {}: {fault}", J::NAME))
        };
        Ok(found.iter().rev().filter(|job| is_wanted(job)).map(read).collect())
    }

    /// A job's state.
    pub async fn state(&self, id: &JobId) -> Result<State> {
        Ok(self.ledger.job(id).await?.job.standing.state)
    }

    /// A job with all its fields, as everybody sees it.
    pub async fn item(&self, id: &JobId) -> Result<Item> {
        let found = self.ledger.job(id).await?;
        Ok(Item::new(&found.namespace, &found.job))
    }
}
