//! The seam: what every ledger offers, whatever it is kept in.

use async_trait::async_trait;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::explain::Explanation;
use crate::history::Entry;
use crate::id::JobId;
use crate::job::{FailureKind, Job};
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::policy::{Backoff, Definition, QueueSettings, Span};
use crate::rows::{Lane, Queue, Tallies};
use crate::state::State;

/// A durable ledger. Each verb is one atomic operation: it has happened, durably, when it answers, or not at all.
#[async_trait]
pub trait Store: Send + Sync {
    /// Adds jobs, all or none; one answer a job, in order. The first use of a namespace makes it.
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>>;
    /// Takes up to `count` jobs.
    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer>;
    /// Settles a wave: each settlement is judged by its own fence, one answer each, in order.
    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>>;
    /// Settles a wave and claims, in one commit.
    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)>;
    /// Extends leases; one answer each, in order.
    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>>;
    /// Start, progress and steps of a held job.
    async fn report(&self, report: Report) -> Result<()>;
    /// An operator's act on jobs; one answer each, in order.
    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>>;
    /// Pauses or resumes a namespace or a lane.
    async fn hold(&self, hold: Hold) -> Result<()>;
    /// Brings in what is due, as a claim would, without claiming; how many jobs changed.
    async fn recover(&self, namespace: Namespace) -> Result<usize>;
    /// Removes ended jobs after their retention and expired tombstones; how many jobs and keys went, at most
    /// `limit` of each.
    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)>;
    /// Registers a job definition, or what a queue says about its jobs.
    async fn define(&self, define: Define) -> Result<()>;

    /// One job.
    async fn job(&self, id: JobId) -> Result<Found>;
    /// The job that holds a deduplication key, if its row is still there.
    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>>;
    /// Jobs, newest first, a page at a time.
    async fn jobs(&self, filter: JobFilter) -> Result<Page>;
    /// The record of a job, oldest first.
    async fn history(&self, id: JobId) -> Result<Vec<Entry>>;
    /// The kept results of a job's steps and waits.
    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>>;
    /// Why a job is where it is, and what will move it.
    async fn explain(&self, id: JobId) -> Result<Explanation>;
    /// The lanes of a namespace that have live members or are paused, by name, from after `after` on.
    async fn lanes(&self, namespace: Namespace, after: Option<Label>, limit: usize) -> Result<Vec<Lane>>;
    /// All namespaces with their counts.
    async fn queues(&self) -> Result<Vec<(Queue, Tallies)>>;
}

/// Jobs to add.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Where to.
    pub namespace: Namespace,
    /// What; at most 10,000 a call.
    pub jobs: Vec<NewJob>,
}

/// A job to add. What is left open comes from its definition, then its queue, then its family.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The job definition.
    pub name: Option<Name>,
    /// What to work on.
    pub payload: Json,
    /// An ordered line to stand in.
    pub lane: Option<Label>,
    /// 0 to 100, higher first; plain namespaces only.
    pub priority: Option<u8>,
    /// No candidate before.
    pub run_at: Option<Timestamp>,
    /// Failed if not claimed by then.
    pub expires_at: Option<Timestamp>,
    /// The lease of a claim that does not ask for one.
    pub lease: Option<Span>,
    /// A business key, to search by.
    pub key: Option<Label>,
    /// At most one job of this key.
    pub dedup: Option<Dedup>,
    /// How many claims may count.
    pub max_attempts: Option<u32>,
    /// Whether a failure may go back to the queue.
    pub retryable: Option<bool>,
    /// The delay between attempts.
    pub backoff: Option<Backoff>,
}

impl NewJob {
    /// A job with this payload and all else open.
    pub fn new(payload: Json) -> Self {
        Self {
            name: None,
            payload,
            lane: None,
            priority: None,
            run_at: None,
            expires_at: None,
            lease: None,
            key: None,
            dedup: None,
            max_attempts: None,
            retryable: None,
            backoff: None,
        }
    }
}

/// A deduplication key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedup {
    /// The key.
    pub key: Label,
    /// Free it when the job ends, rather than when its tombstone expires.
    pub while_live: bool,
}

/// What became of a job to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id, or the id of the job that holds its key.
    pub id: JobId,
    /// Whether it was added.
    pub created: bool,
    /// The state of that job.
    pub state: State,
    /// Whether the holder of the key has another payload.
    pub payload_differs: bool,
}

/// Who takes how many of what.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Where from.
    pub namespace: Namespace,
    /// Who.
    pub robot: Label,
    /// At most how many, 1 to 10,000.
    pub count: usize,
    /// For how long, where the claim says it.
    pub lease: Option<Span>,
    /// Only jobs of these definitions.
    pub names: Option<Vec<Name>>,
    /// Only if this job is the first candidate.
    pub expect: Option<JobId>,
    /// Work out why there is nothing, if there is nothing.
    pub why: bool,
    /// Tell what was looked at.
    pub trace: bool,
}

impl Claim {
    /// A claim of one job, of any name, under the lease that job or queue says.
    pub fn one(namespace: Namespace, robot: Label) -> Self {
        Self { namespace, robot, count: 1, lease: None, names: None, expect: None, why: false, trace: false }
    }
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimAnswer {
    /// What came of it.
    pub outcome: ClaimOutcome,
    /// The rows it looked at, if that was asked for.
    pub trace: Option<Trace>,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// These jobs are held now, each under its fence.
    Claimed(Vec<Job>),
    /// There is no candidate; the reason, if it was asked for.
    Nothing(Option<Nothing>),
    /// The first candidate is not the expected job. Nothing was claimed.
    Mismatch {
        /// The expected job.
        expected: JobId,
        /// The first candidate, if there is one.
        found: Option<JobId>,
    },
}

/// Why there is no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nothing {
    /// The first reason that holds.
    pub why: Why,
    /// The earliest instant at which that may change by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
}

/// The reasons, in their precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Nobody has put anything there.
    NoSuchQueue,
    /// The namespace is paused.
    QueuePaused,
    /// No live job.
    Empty,
    /// All that could come is of other definitions.
    OtherNames,
    /// A robot has it; `next_at` is the end of a lease, unless something comes earlier.
    Leased,
    /// It waits for an instant.
    Deferred,
    /// It is paused, or waits for a signal.
    Held,
}

/// What a claim looked at.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// Due jobs, and the state that they were brought into.
    pub brought_in: Vec<(JobId, State)>,
    /// The jobs taken, in order.
    pub taken: Vec<JobId>,
    /// Heads and unlaned jobs left out (at most 100), and why.
    pub left_out: Vec<(JobId, LeftOut)>,
    /// How many jobs are behind a head, outside the scan.
    pub blocked: u64,
}

/// Why a claim left a job alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// A candidate, behind those taken.
    LaterInOrder,
    /// Of a definition that the claim does not run.
    OtherName,
    /// Its job, lane or namespace is paused.
    Paused,
    /// Held under a lease.
    Leased,
    /// Its instant is still to come.
    Deferred,
    /// It waits for a signal.
    Waiting,
}

/// What a caller shows to act on a held job: the fence of its claim, its name, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// The fence that the claim handed out.
    pub fence: Option<u64>,
    /// The name that the claim was made under.
    pub robot: Option<Label>,
}

impl Claimant {
    /// The holder of this fence.
    pub fn fence(fence: u64) -> Self {
        Self { fence: Some(fence), robot: None }
    }

    /// Whoever claimed under this name.
    pub fn robot(robot: Label) -> Self {
        Self { fence: None, robot: Some(robot) }
    }
}

/// Settlements of one namespace.
#[derive(Clone, Debug)]
pub struct Wave {
    /// Where.
    pub namespace: Namespace,
    /// What; at most 10,000 a call.
    pub settlements: Vec<Settlement>,
}

/// How one claim ended.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The job.
    pub id: JobId,
    /// Who settles.
    pub claimant: Claimant,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, with a result.
    Succeeded(Option<Json>),
    /// Not done.
    Failed(Failure),
    /// A durable wait. Without a signal it is for `until` alone. Gives the attempt back.
    Wait {
        /// The deadline.
        until: Option<Timestamp>,
        /// The signal.
        signal: Option<Name>,
    },
    /// Put off until an instant. Gives the attempt back.
    Snooze(Timestamp),
    /// Given back unworked. Gives the attempt back.
    Release,
    /// Ended on somebody's wish.
    Cancelled,
}

/// Why it was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Business or system.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// For programs.
    pub code: Option<String>,
    /// More, as JSON.
    pub details: Option<Json>,
    /// Not again before this has passed; in place of the back-off.
    pub retry_after: Option<Span>,
}

impl Failure {
    /// A failure of `kind` with this message.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None, details: None, retry_after: None }
    }
}

/// Where a settle led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettleAnswer {
    /// The job's state after it.
    pub state: State,
    /// When it is a candidate again, where the settle set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
}

/// Leases to extend, of one namespace.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    /// Where.
    pub namespace: Namespace,
    /// Which.
    pub beats: Vec<(JobId, Claimant)>,
    /// By how much from now on; never shortens. Otherwise what job or queue says.
    pub lease: Option<Span>,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Beat {
    /// Until when the job is held now.
    pub lease_expires_at: Timestamp,
    /// Somebody wants it stopped: stop, and settle.
    pub cancel_requested: bool,
}

/// Something that a holder says about its job.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where.
    pub namespace: Namespace,
    /// Which.
    pub id: JobId,
    /// Who.
    pub claimant: Claimant,
    /// What.
    pub news: News,
}

/// What a holder says.
#[derive(Clone, Debug)]
pub enum News {
    /// It started.
    Started,
    /// How far it is; at most 4 KiB.
    Progress(String),
    /// A step's result, kept once: the first result of a name stays.
    Step {
        /// Its name, unique in the job.
        name: String,
        /// Its result.
        value: Json,
    },
}

/// An operator's act on jobs of one namespace.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Where.
    pub namespace: Namespace,
    /// Which.
    pub ids: Vec<JobId>,
    /// What.
    pub action: Action,
    /// Who.
    pub actor: Option<Label>,
    /// Why.
    pub reason: Option<String>,
}

/// What operators do to jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// End it: at once where nobody works on it, else by asking its holder; `force` does not ask.
    Cancel {
        /// At once, fencing the holder off.
        force: bool,
    },
    /// End it, if it is the head of its lane.
    Skip,
    /// Hold it.
    Pause,
    /// Let it go on.
    Resume,
    /// Another priority.
    Reprioritise(u8),
    /// Another `runAt`; its place stays.
    Postpone(Timestamp),
    /// From the beginning, at the end of the order.
    Restart,
    /// Tell it something; kept until it waits for it.
    Signal {
        /// The signal's name.
        name: Name,
        /// What comes with it.
        payload: Json,
    },
}

/// What an act came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operated {
    /// The job's state after it.
    pub state: State,
    /// Whether anything changed; an act repeated changes nothing.
    pub changed: bool,
    /// The holder was asked to stop and has not answered yet.
    pub cancel_requested: bool,
}

/// A pause, or its end.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Where.
    pub namespace: Namespace,
    /// Which lane; the whole namespace otherwise.
    pub lane: Option<Label>,
    /// Pause, or resume.
    pub paused: bool,
    /// Who.
    pub actor: Option<Label>,
    /// Why.
    pub reason: Option<String>,
}

/// Something to register.
#[derive(Clone, Debug)]
pub enum Define {
    /// A job definition; replaces the one of its name.
    Job(Definition),
    /// What a queue says about its jobs; replaces what it said.
    Queue(Namespace, QueueSettings),
}

/// A job and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its namespace.
    pub namespace: Namespace,
    /// The job.
    pub job: Job,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// In this namespace.
    pub namespace: Option<Namespace>,
    /// With this status: a family's word or a state.
    pub status: Option<String>,
    /// In this lane.
    pub lane: Option<Label>,
    /// With this business key.
    pub key: Option<Label>,
    /// Enqueued at or after.
    pub since: Option<Timestamp>,
    /// From after this row on, as [`Page::next`] says.
    pub after_row: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

impl JobFilter {
    /// Whether a job of `namespace` has the wanted status.
    pub fn takes_status(&self, namespace: &Namespace, state: State, business: bool) -> bool {
        self.status
            .as_deref()
            .is_none_or(|word| word == state.word() || word == namespace.family().word(state, business))
    }

    /// All words that [`JobFilter::status`] may be.
    pub fn status_words() -> Vec<&'static str> {
        use crate::name::Family;
        let mut words: Vec<&str> = Vec::new();
        for family in [Family::JobQueue, Family::TransactionQueue, Family::Plain] {
            for state in State::ALL {
                for business in [false, true] {
                    let word = family.word(state, business);
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
            }
        }
        words
    }

    /// Refuses a word that no job can have.
    pub fn check(&self) -> Result<()> {
        match self.status.as_deref() {
            Some(word) if !Self::status_words().contains(&word) => {
                let why = format!("is none of {}", Self::status_words().join(", "));
                Err(Error::invalid("status", word, why))
            }
            _ => Ok(()),
        }
    }
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The jobs, newest first.
    pub jobs: Vec<Found>,
    /// Where the next page begins, if there may be one.
    pub next: Option<u64>,
}
