//! What a job's row can't tell: the append-only record of failures, losses, waits and operators' acts.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::json::Json;
use crate::name::Label;

/// What happened. A success at the first attempt leaves no entry: the row tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// An attempt failed and the job ended.
    Failed,
    /// An attempt failed and the job went back to the queue.
    Retried,
    /// A lease lapsed before a settle.
    LeaseLost,
    /// `expiresAt` passed before the first claim.
    Expired,
    /// A durable wait for a signal began.
    Waited,
    /// A wait's deadline passed.
    WaitTimedOut,
    /// The holder put it off.
    Snoozed,
    /// The holder gave it back unworked.
    Released,
    /// It ended as cancelled.
    Cancelled,
    /// Its holder was asked to stop.
    CancelRequested,
    /// Held.
    Paused,
    /// Let go on.
    Resumed,
    /// Its priority was changed.
    Reprioritised,
    /// Its `runAt` was moved.
    Postponed,
    /// Started anew.
    Restarted,
    /// A signal came.
    Signalled,
}

/// One entry of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: Happening,
    /// The job's row; `None` for the namespace or a lane.
    #[serde(skip)]
    pub row: Option<u64>,
    /// The lane, where the entry is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Label>,
    /// The claim that it ended or was said under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Who: the claimant, or the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Label>,
    /// Why, in the operator's or the failure's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// From when on the job is a candidate again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    /// The exception, as in the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<Json>,
}

impl Entry {
    /// An entry about the job in `row`.
    pub(crate) fn of_job(at: Timestamp, row: u64, event: Happening) -> Self {
        Self {
            at,
            event,
            row: Some(row),
            lane: None,
            fence: None,
            actor: None,
            reason: None,
            run_at: None,
            exception: None,
        }
    }
}
