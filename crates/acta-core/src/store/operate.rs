//! Operators' acts, pauses, definitions.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::policy::{Definition, MOST_PRIORITY, QueueSettings, check_budget, check_lease};
use crate::state::State;

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

impl Define {
    /// Refuses what no job of it could be run with.
    pub fn check(&self) -> Result<()> {
        let (lease, max_attempts, priority) = match self {
            Self::Job(definition) => (definition.lease, definition.max_attempts, definition.priority),
            Self::Queue(_, settings) => (settings.lease, None, None),
        };
        check_lease(lease)?;
        check_budget(max_attempts)?;
        if let Some(priority) = priority.filter(|&priority| priority > MOST_PRIORITY) {
            let why = format!("is not between 0 and {MOST_PRIORITY}");
            return Err(Error::invalid("priority", &priority.to_string(), why));
        }
        Ok(())
    }
}
