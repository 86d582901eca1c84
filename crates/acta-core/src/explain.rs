//! Why a job is where it is.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::history::Entry;
use crate::id::JobId;
use crate::name::Label;
use crate::state::State;

/// What holds a job, since when, until when, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The job.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// The one reason that holds it now.
    pub reason: Reason,
    /// Since when, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Until when, where time will change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The job in its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
    /// What to do, for people.
    pub advice: String,
}

/// The reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The next claim takes it.
    Next,
    /// Another candidate comes first.
    BehindOthers,
    /// Its lane's head comes first.
    BehindHead,
    /// The namespace is paused.
    QueuePaused,
    /// Its lane is paused.
    LanePaused,
    /// It is paused itself.
    Paused,
    /// Its instant is still to come.
    Deferred,
    /// It waits for a signal.
    WaitingForSignal,
    /// Its `expiresAt` has passed; the next claim ends it.
    Expired,
    /// A robot has it.
    Held,
    /// A robot had it, and let its lease lapse; the next claim takes it over.
    LeaseLapsed,
    /// It has ended.
    Ended,
}

/// The job that is in the way of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// Its id.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Label>,
    /// Held since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Held, deferred or waiting until.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// It is paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// A lane, and what is at its head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneView {
    /// Its name.
    pub name: Label,
    /// How many live members it has, the head among them.
    pub live: u64,
    /// No claims and reclaims.
    pub paused: bool,
    /// Who paused it, if it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Its head: who holds the lane up, if anybody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Blocker>,
}

/// A pause of a queue or a lane, as the record has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Since when.
    pub since: Timestamp,
    /// Who.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Label>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl std::fmt::Display for Pause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "paused since {}", self.since)?;
        if let Some(actor) = &self.actor {
            write!(f, " by {}", actor.as_str())?;
        }
        match &self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

impl From<&Entry> for Pause {
    fn from(entry: &Entry) -> Self {
        Self { since: entry.at, actor: entry.actor.clone(), reason: entry.reason.clone() }
    }
}
