//! A ledger on the test's desk: opened on a standing clock, with short words for what tests say often.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use acta_core::store::{
    Action, Claim, ClaimOutcome, Claimant, Dedup, Enqueue, Enqueued, Found, Heartbeats, JobFilter, NewJob, News,
    Nothing, Operated, Operation, Outcome, QueueFilter, Report, SettleAnswer, Settlement, Wave,
};
use acta_core::vitals::Activity;
use acta_core::{Item, Job, JobId, Json, Label, ManualClock, Namespace, Result, Seeded, Span, State, Store, Timestamp};

/// When every test begins: 2026-10-03T09:12:00Z.
pub const START: i64 = 1_791_018_720_000;

/// A store under test.
pub struct Desk {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// What must live as long as the ledger: its folder.
    _keep: Box<dyn Any + Send + Sync>,
}

/// What a provider gets to open a ledger with.
pub struct Given {
    /// The clock.
    pub clock: Arc<ManualClock>,
    /// The random numbers.
    pub random: Box<Seeded>,
}

/// Opens an empty ledger; also returns what must outlive it.
pub type Provider = fn(Given) -> (Arc<dyn Store>, Box<dyn Any + Send + Sync>);

/// Runs a future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap_or_else(|fault| panic!("no runtime: {fault}")).block_on(future)
}

/// The ledger that is the specification itself.
pub fn book(given: Given) -> (Arc<dyn Store>, Box<dyn Any + Send + Sync>) {
    (Arc::new(acta_core::shelf::MemoryStore::new(given.clock, given.random)), Box::new(()))
}

/// A JSON text.
pub fn json(text: &str) -> Json {
    Json::new(text).unwrap_or_else(|fault| panic!("{fault}"))
}

/// A label.
pub fn label(text: &str) -> Label {
    Label::new("label", text).unwrap_or_else(|fault| panic!("{fault}"))
}

/// A namespace by its path.
pub fn namespace(path: &str) -> Namespace {
    path.parse().unwrap_or_else(|fault| panic!("{fault}"))
}

/// A job with an empty object as payload.
pub fn new_job() -> NewJob {
    NewJob::new(json("{}"))
}

/// A job in a lane.
pub fn in_lane(lane: &str) -> NewJob {
    NewJob { lane: Some(label(lane)), ..new_job() }
}

/// A job with a deduplication key.
pub fn with_key(key: &str) -> NewJob {
    NewJob { dedup: Some(Dedup { key: label(key), while_live: false }), ..new_job() }
}

impl Desk {
    /// An empty ledger of a provider.
    pub fn open(provider: Provider) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let (store, keep) = provider(Given { clock: Arc::clone(&clock), random: Box::new(Seeded::new(1)) });
        Self { store, clock, _keep: keep }
    }

    /// The instant `seconds` from the beginning of the test.
    pub fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(START + seconds * 1_000)
    }

    /// Moves the clock.
    pub fn pass(&self, seconds: i64) {
        self.clock.advance_ms(seconds * 1_000);
    }

    /// How many seconds have passed.
    pub fn clock_at(&self) -> i64 {
        acta_core::Clock::now(self.clock.as_ref()).since_ms(Self::at(0)) / 1_000
    }

    /// What goes on in a queue that is there, and so many of its last minutes.
    pub async fn activity(&self, path: &str, minutes: usize) -> Activity {
        let filter = QueueFilter { namespace: Some(namespace(path)), activity: Some(minutes) };
        let overview = self.store.queues(filter).await.unwrap_or_else(|fault| panic!("{fault}"));
        overview.activity.into_values().next().unwrap_or_else(|| panic!("there is no {path}"))
    }

    /// Adds jobs; fails the test if they are refused.
    pub async fn add(&self, path: &str, jobs: Vec<NewJob>) -> Vec<JobId> {
        self.try_add(path, jobs)
            .await
            .unwrap_or_else(|fault| panic!("{fault}"))
            .into_iter()
            .map(|added| added.id)
            .collect()
    }

    /// Adds one job.
    pub async fn add_one(&self, path: &str, job: NewJob) -> JobId {
        self.add(path, vec![job]).await.remove(0)
    }

    /// Adds jobs.
    pub async fn try_add(&self, path: &str, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.store.enqueue(Enqueue { namespace: namespace(path), jobs }).await
    }

    /// Claims up to `count` under the name `robot`.
    pub async fn claim(&self, path: &str, robot: &str, count: usize) -> Vec<Job> {
        self.claim_with(Claim { count, ..Claim::one(namespace(path), label(robot)) }).await
    }

    /// Claims as asked; nothing is an empty answer.
    pub async fn claim_with(&self, claim: Claim) -> Vec<Job> {
        match self.store.claim(claim).await.unwrap_or_else(|fault| panic!("{fault}")).outcome {
            ClaimOutcome::Claimed(jobs) => jobs,
            ClaimOutcome::Nothing(_) => Vec::new(),
            ClaimOutcome::Mismatch { expected, found } => panic!("expected {expected}, found {found:?}"),
        }
    }

    /// Claims one job under a lease of so many seconds.
    pub async fn claim_for(&self, path: &str, robot: &str, seconds: i64) -> Job {
        let lease = Some(Span::from_millis(seconds * 1_000));
        self.claim_with(Claim { lease, ..Claim::one(namespace(path), label(robot)) }).await.remove(0)
    }

    /// Claims one job; the test fails if there is none.
    pub async fn claim_one(&self, path: &str, robot: &str) -> Job {
        let mut jobs = self.claim(path, robot, 1).await;
        assert_eq!(jobs.len(), 1, "a job to claim in {path}");
        jobs.remove(0)
    }

    /// Why there is nothing to claim.
    pub async fn why(&self, path: &str) -> Nothing {
        let claim = Claim { why: true, ..Claim::one(namespace(path), label("r")) };
        match self.store.claim(claim).await.unwrap_or_else(|fault| panic!("{fault}")).outcome {
            ClaimOutcome::Nothing(Some(nothing)) => nothing,
            other => panic!("{other:?}"),
        }
    }

    /// Settles one claim by its fence.
    pub async fn settle(&self, path: &str, job: &Job, outcome: Outcome) -> Result<SettleAnswer> {
        self.settle_as(path, &job.identity.id, Claimant::fence(job.standing.fence), outcome).await
    }

    /// Settles one job as a certain claimant.
    pub async fn settle_as(
        &self,
        path: &str,
        id: &JobId,
        claimant: Claimant,
        outcome: Outcome,
    ) -> Result<SettleAnswer> {
        let settlements = vec![Settlement { id: id.clone(), claimant, outcome }];
        self.store.settle(Wave { namespace: namespace(path), settlements }).await?.remove(0)
    }

    /// Settles as done.
    pub async fn done(&self, path: &str, job: &Job) {
        let answer = self.settle(path, job, Outcome::Succeeded(None)).await;
        assert_eq!(answer.map(|answer| answer.state), Ok(State::Succeeded));
    }

    /// Says something about a held job.
    pub async fn report(&self, path: &str, job: &Job, news: News) -> Result<()> {
        let claimant = Claimant::fence(job.standing.fence);
        self.store.report(Report { namespace: namespace(path), id: job.identity.id.clone(), claimant, news }).await
    }

    /// Extends a lease by so many seconds; whether a cancel was requested.
    pub async fn heartbeat(&self, path: &str, job: &Job, seconds: i64) -> Result<bool> {
        let beats = vec![(job.identity.id.clone(), Claimant::fence(job.standing.fence))];
        let lease = Some(Span::from_millis(seconds * 1_000));
        let mut answers =
            self.store.heartbeat(Heartbeats { namespace: namespace(path), beats, lease, worker: None }).await?;
        answers.remove(0).map(|beat| beat.cancel_requested)
    }

    /// An operator's act on one job.
    pub async fn act(&self, path: &str, id: &JobId, action: Action) -> Result<Operated> {
        let operation = Operation {
            namespace: namespace(path),
            ids: vec![id.clone()],
            action,
            actor: Some(label("operator")),
            reason: Some("test".into()),
        };
        self.store.operate(operation).await?.remove(0)
    }

    /// One job.
    pub async fn found(&self, id: &JobId) -> Found {
        self.store.job(id.clone()).await.unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// A job's state.
    pub async fn state(&self, id: &JobId) -> State {
        self.found(id).await.job.standing.state
    }

    /// A job's item.
    pub async fn item(&self, id: &JobId) -> Item {
        let found = self.found(id).await;
        Item::new(&found.namespace, &found.job)
    }

    /// All jobs of a namespace, newest first.
    pub async fn all(&self, path: &str) -> Vec<Found> {
        let filter = JobFilter { namespace: Some(namespace(path)), limit: 1_000, ..JobFilter::default() };
        self.store.jobs(filter).await.unwrap_or_else(|fault| panic!("{fault}")).jobs
    }
}

/// The ids of jobs, in order.
pub fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.identity.id.clone()).collect()
}
