//! The process whose power fails, or whose disk is full: callers at work on one ledger at the same time.
//!
//! Each writes down what was acknowledged to it, a line a fact, as soon as it is:
//! `enqueued <id> <key>`, `claimed <id> <fence>`, `ended <id> <state>`, `paused <id> yes`.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acta_core::job::FailureKind;
use acta_core::store::{
    Action, Claim, ClaimOutcome, Claimant, Enqueue, Failure, NewJob, Operation, Outcome, Settlement, Wave,
};
use acta_core::{Error, Job, JobId, Label, ManualClock, Result, Seeded, State, Store, Timestamp};
use acta_store::sqlite::Synchronous;
use acta_store::{FileStore, SqliteStore, file, sqlite};
use acta_testkit::block_on;
use acta_testkit::desk::{Desk, START, json, label, namespace, with_key};
use tokio::task::JoinSet;

/// What it says once every caller was refused, before it waits for room.
pub(super) const FULL: &str = "the disk is full";

/// How many callers work at the same time.
const CALLERS: usize = 4;
/// How often each enqueues and claims before the power fails.
const ROUNDS: usize = 60;
/// How often each is refused before it believes that the disk is full.
const REFUSALS: usize = 5;
/// By then the disk must be full.
const MOST_ROUNDS: usize = 5_000;

/// What a ledger is kept in.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Sqlite(Synchronous),
    Files,
}

/// Opens the ledger below a folder, with a clock that stands still.
pub(super) fn open(kind: Kind, folder: &Path) -> Result<Arc<dyn Store>> {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let random: Option<Box<dyn acta_core::Random>> = Some(Box::new(Seeded::new(1)));
    Ok(match kind {
        Kind::Sqlite(synchronous) => {
            let options = sqlite::Options { synchronous, clock, random };
            Arc::new(SqliteStore::open(folder.join(crate::LEDGER), options)?)
        }
        Kind::Files => Arc::new(FileStore::open(folder.join(crate::FILES), file::Options { clock, random })?),
    })
}

/// One of the callers.
#[derive(Clone)]
struct Caller {
    store: Arc<dyn Store>,
    /// The folder that an error names a file of.
    place: String,
    notes: Arc<File>,
    number: usize,
}

/// A job with a key that no other has.
fn job(key: &str) -> NewJob {
    job_of(key, 1_000)
}

fn job_of(key: &str, size: usize) -> NewJob {
    let filling = "x".repeat(size);
    NewJob { payload: json(&format!(r#"{{"key": "{key}", "filling": "{filling}"}}"#)), ..with_key(key) }
}

fn too_much() -> Vec<NewJob> {
    (0..80).map(|number| job_of(&format!("too-much-{number}"), 100_000)).collect()
}

impl Caller {
    /// Notes a fact, by one write: in the trace its place tells what the power failure came before.
    fn note(&self, verb: &str, id: &JobId, what: impl std::fmt::Display) {
        (&*self.notes).write_all(format!("{verb} {id} {what}\n").as_bytes()).expect("the notes take a line");
    }

    /// Enqueues a job that nobody has enqueued before.
    async fn enqueue(&self, job: NewJob) -> Result<JobId> {
        Ok(self.enqueue_all(vec![job]).await?.remove(0))
    }

    async fn enqueue_all(&self, jobs: Vec<NewJob>) -> Result<Vec<JobId>> {
        let keys: Vec<Label> = jobs.iter().flat_map(|job| &job.dedup).map(|dedup| dedup.key.clone()).collect();
        let added = self.store.enqueue(Enqueue { namespace: namespace("queues/q"), jobs }).await?;
        for (added, key) in added.iter().zip(keys) {
            assert!(added.created, "{key} is there already");
            self.note("enqueued", &added.id, key);
        }
        Ok(added.into_iter().map(|added| added.id).collect())
    }

    async fn claim(&self) -> Result<Option<Job>> {
        let claim = Claim::one(namespace("queues/q"), label(&format!("robot-{}", self.number)));
        let ClaimOutcome::Claimed(mut jobs) = self.store.claim(claim).await?.outcome else { return Ok(None) };
        let job = jobs.remove(0);
        self.note("claimed", &job.identity.id, job.standing.fence);
        Ok(Some(job))
    }

    async fn settle(&self, job: &Job, outcome: Outcome) -> Result<()> {
        let claimant = Claimant::fence(job.standing.fence);
        let settlements = vec![Settlement { id: job.identity.id.clone(), claimant, outcome }];
        let wave = Wave { namespace: namespace("queues/q"), settlements };
        let settled = self.store.settle(wave).await?.remove(0)?;
        self.note("ended", &job.identity.id, settled.state.word());
        Ok(())
    }

    async fn operate(&self, id: JobId, action: Action) -> Result<()> {
        let (namespace, ids) = (namespace("queues/q"), vec![id.clone()]);
        let operation = Operation { namespace, ids, action, actor: None, reason: None };
        let operated = self.store.operate(operation).await?.remove(0)?;
        match operated.state {
            State::Cancelled => self.note("ended", &id, operated.state.word()),
            _ => self.note("paused", &id, "yes"),
        }
        Ok(())
    }

    /// A little of everything.
    async fn work(self) -> Result<()> {
        for round in 0..ROUNDS {
            let key = format!("{}-{round}", self.number);
            let lane = (round % 3 > 0).then(|| label(&format!("lane-{}", round % 4)));
            self.enqueue(NewJob { lane: lane.clone(), ..job(&key) }).await?;
            if let Some(job) = self.claim().await? {
                let failed = || Outcome::Failed(Failure::new(FailureKind::Business, "no such invoice"));
                let outcome = if round % 4 == 3 { failed() } else { Outcome::Succeeded(Some(json("[1]"))) };
                self.settle(&job, outcome).await?;
            }
            if round % 3 == self.number % 3 {
                let later = format!("{key}-later");
                // Not yet due, so that no other caller claims it. One that stays paused may not keep a lane waiting.
                let is_paused = round % 2 == 0;
                let (run_at, lane) = (Some(Desk::at(86_400)), lane.filter(|_| !is_paused));
                let id = self.enqueue(NewJob { run_at, lane, ..job(&later) }).await?;
                let action = if is_paused { Action::Pause } else { Action::Cancel { force: false } };
                self.operate(id, action).await?;
            }
        }
        Ok(())
    }

    /// The error of a full disk, and no other.
    fn check_refusal(&self, fault: &Error) {
        assert!(fault.is_unavailable() && fault.to_string().starts_with(&self.place), "{fault:?}");
    }

    /// Works until it has been refused often enough.
    async fn fill(self) -> (Self, Refused) {
        let mut refused = Refused::default();
        for round in 0..MOST_ROUNDS {
            if self.number == 0 && round % 8 == 0 {
                self.ask_too_much().await;
            }
            if let Err(fault) = self.add_and_end_one(round, &mut refused).await {
                self.check_refusal(&fault);
                refused.times += 1;
            }
            if refused.times >= REFUSALS {
                return (self, refused);
            }
        }
        panic!("the disk was not full after {MOST_ROUNDS} rounds");
    }

    async fn add_and_end_one(&self, round: usize, refused: &mut Refused) -> Result<()> {
        let key = format!("{}-{round}", self.number);
        let lane = (round % 2 == 1).then(|| label("lane"));
        if let Err(fault) = self.enqueue(NewJob { lane, ..job(&key) }).await {
            refused.keys.push(key);
            return Err(fault);
        }
        let Some(job) = self.claim().await? else { return Ok(()) };
        let settled = self.settle(&job, Outcome::Succeeded(None)).await;
        if settled.is_err() {
            refused.claims.push(job);
        }
        settled
    }

    /// Enqueues more than the disk has room for, and more than SQLite keeps in its memory: unlike that of a small change,
    /// its error comes in the midst of a statement, and takes with it what others have done in the same group.
    async fn ask_too_much(&self) {
        let enqueue = Enqueue { namespace: namespace("queues/q"), jobs: too_much() };
        let fault = self.store.enqueue(enqueue).await.expect_err("there is no room for that");
        self.check_refusal(&fault);
    }

    /// Does what was refused: nothing of it was done before.
    async fn go_on(self, refused: Refused) -> Result<()> {
        for key in refused.keys {
            self.enqueue(job(&key)).await?;
        }
        for job in refused.claims {
            self.settle(&job, Outcome::Succeeded(None)).await?;
        }
        if self.number == 0 {
            self.enqueue_all(too_much()).await?;
        }
        Ok(())
    }
}

/// What a caller was refused, and how often.
#[derive(Default)]
struct Refused {
    times: usize,
    keys: Vec<String>,
    claims: Vec<Job>,
}

/// The callers of the ledger in the folder of the environment.
fn callers(kind: Kind) -> Vec<Caller> {
    let path = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")));
    let folder = path("DISK_FOLDER");
    let (store, notes) = (open(kind, &folder).expect("a ledger"), Arc::new(append(&path("ACTA_POWER_NOTES"))));
    let place = folder.display().to_string();
    // Whoever loses its power does not close its files.
    std::mem::forget(Arc::clone(&store));
    let caller = |number| Caller { store: Arc::clone(&store), place: place.clone(), notes: Arc::clone(&notes), number };
    (0..CALLERS).map(caller).collect()
}

fn append(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// Lets all callers work, until the power fails.
pub(super) fn work(kind: Kind) {
    block_on(async {
        let working: JoinSet<_> = callers(kind).into_iter().map(Caller::work).collect();
        working.join_all().await.into_iter().for_each(|done| done.expect("a disk with room"));
    });
}

/// Lets all callers work until the disk is full, waits for a line that says that there is room, and lets them go on.
pub(super) fn fill(kind: Kind) {
    block_on(async {
        let filling: JoinSet<_> = callers(kind).into_iter().map(Caller::fill).collect();
        let refused = filling.join_all().await;
        println!("{FULL}");
        std::io::stdin().lock().read_line(&mut String::new()).expect("a line");
        let going_on: JoinSet<_> = refused.into_iter().map(|(caller, refused)| caller.go_on(refused)).collect();
        going_on.join_all().await.into_iter().for_each(|done| done.expect("a disk with room again"));
    });
}
