//! Claiming jobs.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::JobId;
use crate::job::Job;
use crate::name::{Label, Name, Namespace};
use crate::policy::Span;
use crate::state::State;

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
    /// When that was, by the ledger's clock.
    #[serde(skip)]
    pub at: Timestamp,
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

impl ClaimAnswer {
    /// The answer of a queue that is not there.
    pub fn no_such_queue(claim: &Claim) -> Self {
        let outcome = match &claim.expect {
            Some(expected) => ClaimOutcome::Mismatch { expected: expected.clone(), found: None },
            None => ClaimOutcome::Nothing(claim.why.then_some(Nothing {
                why: Why::NoSuchQueue,
                at: Timestamp::MIN,
                next_at: None,
            })),
        };
        Self { outcome, trace: None }
    }
}
