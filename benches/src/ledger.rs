//! The ledger's own figures.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acta_core::store::{Claim, ClaimOutcome, Claimant, Enqueue, NewJob, Outcome, Settlement, Wave};
use acta_core::{Job, Json, Label, Namespace, Store};
use acta_store::SqliteStore;
use acta_store::sqlite::{Options, Synchronous};
use anyhow::{Result, bail};

/// A ledger under measurement.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<SqliteStore>,
    namespace: Namespace,
    robot: Label,
}

impl Ledger {
    /// An empty ledger in a new file.
    pub fn open(path: &Path, synchronous: Synchronous) -> Result<Self> {
        let store = SqliteStore::open(path, Options { synchronous, ..Options::default() })?;
        let namespace = Namespace::job_queue("bench")?;
        Ok(Self { store: Arc::new(store), namespace, robot: Label::new("robot", "bench")? })
    }

    /// The same as an application has it.
    pub fn library(&self) -> acta::Ledger {
        acta::Ledger::over(Arc::new(acta::Observed::over(Arc::clone(&self.store) as _)))
    }

    /// Adds these jobs in one call.
    pub async fn add(&self, jobs: Vec<NewJob>) -> Result<()> {
        self.store.enqueue(Enqueue { namespace: self.namespace.clone(), jobs }).await?;
        Ok(())
    }

    /// Adds `total` jobs, `batch` a call; how long it took.
    pub async fn insert(&self, total: usize, batch: usize, payload: &Json) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..total / batch {
            self.add(vec![NewJob::new(payload.clone()); batch]).await?;
        }
        Ok(start.elapsed())
    }

    /// Adds `total` jobs singly from `tasks` tasks at once; how long it took.
    pub async fn insert_from(&self, tasks: usize, total: usize, payload: &Json) -> Result<Duration> {
        let start = Instant::now();
        let mut running = Vec::new();
        for _ in 0..tasks {
            let (ledger, payload) = (self.clone(), payload.clone());
            running.push(tokio::spawn(async move { ledger.insert(total / tasks, 1, &payload).await }));
        }
        for task in running {
            task.await??;
        }
        Ok(start.elapsed())
    }

    /// Claims up to `count`.
    pub async fn claim(&self, count: usize) -> Result<Vec<Job>> {
        let claim = Claim { count, ..Claim::one(self.namespace.clone(), self.robot.clone()) };
        match self.store.claim(claim).await?.outcome {
            ClaimOutcome::Claimed(jobs) => Ok(jobs),
            ClaimOutcome::Nothing(_) => Ok(Vec::new()),
            ClaimOutcome::Mismatch { .. } => bail!("no expectation, no mismatch"),
        }
    }

    /// Settles these as done.
    pub async fn settle(&self, jobs: &[Job]) -> Result<()> {
        let done = |job: &Job| Settlement {
            id: job.identity.id.clone(),
            claimant: Claimant::fence(job.standing.fence),
            outcome: Outcome::Succeeded(None),
        };
        let settlements = jobs.iter().map(done).collect();
        for answer in self.store.settle(Wave { namespace: self.namespace.clone(), settlements }).await? {
            answer?;
        }
        Ok(())
    }

    /// Claims and settles all jobs, `batch` a call; how long it took.
    pub async fn drain(&self, batch: usize) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let jobs = self.claim(batch).await?;
            if jobs.is_empty() {
                return Ok(start.elapsed());
            }
            self.settle(&jobs).await?;
        }
    }
}
