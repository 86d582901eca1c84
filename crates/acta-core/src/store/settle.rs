//! Ending claims.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::FailureKind;
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::policy::Span;
use crate::state::State;

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

impl Wave {
    /// The answers of a queue that is not there.
    pub fn no_such_queue(&self) -> Vec<Result<SettleAnswer>> {
        let missing = |settlement: &Settlement| Err(Error::not_found("job", settlement.id.as_str()));
        self.settlements.iter().map(missing).collect()
    }
}
