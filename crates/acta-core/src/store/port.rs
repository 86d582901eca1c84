//! A whole ledger on its way: copies, backups, and what is wrong with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{QueueFilter, Store};
use crate::audit;
use crate::book::{Common, Contents};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::JobId;

/// A part of a ledger, to be carried to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// What all namespaces have in common.
    pub common: Common,
    /// One namespace; none where only what they have in common is carried.
    pub contents: Option<Contents>,
}

/// Whether a ledger takes writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Openness {
    /// It does.
    #[default]
    Open,
    /// It was copied: its jobs are elsewhere now.
    Moved {
        /// Where they are.
        to: String,
    },
    /// It is being copied into, and not whole yet.
    Arriving {
        /// Where its jobs come from.
        from: String,
    },
    /// It does, and is a whole copy.
    Arrived {
        /// Where its jobs came from.
        from: String,
    },
}

/// A step of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The ledger is about to be copied away.
    Leaving {
        /// Where to.
        to: String,
    },
    /// The ledger is about to be copied into.
    Arriving {
        /// Where from.
        from: String,
    },
    /// It has all that was to come.
    Arrived,
    /// Nothing will come after all: it is open if it is still empty.
    Withdrawn,
    /// The copy to there is given up: the ledger takes writes again.
    Staying {
        /// Where it was to go.
        to: String,
    },
}

/// What a step of a copy has to know of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// It holds something.
    pub is_used: bool,
    /// A job in somebody's hands, and until when.
    pub held: Option<(JobId, Timestamp)>,
}

impl Openness {
    /// Refuses a write where there is to be none; `place` is the ledger.
    pub fn check(&self, place: impl fmt::Display) -> Result<()> {
        let why = match self {
            Self::Open | Self::Arrived { .. } => return Ok(()),
            Self::Moved { to } => format!("was moved to {to} and takes no more writes; work there"),
            Self::Arriving { from } => {
                format!("is not whole yet: the copy from {from} was not finished; run the same command again")
            }
        };
        Err(Error::Closed { place: place.to_string(), why })
    }

    /// What a step of a copy makes of it. A step that was taken is taken again without harm, so that an interrupted copy is
    /// resumed by doing it again.
    pub fn after(&self, mark: &Mark, evidence: &Evidence, place: impl fmt::Display) -> Result<Self> {
        let refuse = |why: String| Err(Error::Closed { place: place.to_string(), why });
        match (self, mark) {
            (Self::Open | Self::Arrived { .. }, Mark::Leaving { to }) => match &evidence.held {
                Some((id, until)) => refuse(format!(
                    "can't be copied while a robot has a job: {id} is held until {until}; settle or cancel it, or wait"
                )),
                None => Ok(Self::Moved { to: to.clone() }),
            },
            (Self::Moved { to }, Mark::Leaving { to: again }) if to == again => Ok(self.clone()),
            (Self::Open | Self::Arrived { .. }, Mark::Arriving { .. }) if evidence.is_used => {
                refuse("is not empty; copy into a ledger that is, or one that is not there".into())
            }
            (Self::Open | Self::Arrived { .. }, Mark::Arriving { from }) => Ok(Self::Arriving { from: from.clone() }),
            (Self::Arriving { from }, Mark::Arriving { from: again }) if from == again => Ok(self.clone()),
            (Self::Arriving { from }, Mark::Arrived) => Ok(Self::Arrived { from: from.clone() }),
            (Self::Arriving { .. }, Mark::Withdrawn) if !evidence.is_used => Ok(Self::Open),
            (Self::Moved { to }, Mark::Staying { to: again }) if to == again => Ok(Self::Open),
            (Self::Open | Self::Arrived { .. }, Mark::Staying { to }) => {
                refuse(format!("was not copied to {to}: there is nothing to give up"))
            }
            (Self::Open | Self::Arrived { .. }, Mark::Arrived) | (_, Mark::Withdrawn) => Ok(self.clone()),
            (Self::Moved { .. } | Self::Arriving { .. }, _) => {
                self.check(place)?;
                Ok(self.clone())
            }
        }
    }

    /// Refuses a part of a copy where none is expected.
    pub fn check_arriving(&self, place: impl fmt::Display) -> Result<()> {
        match self {
            Self::Arriving { .. } => Ok(()),
            Self::Open | Self::Moved { .. } | Self::Arrived { .. } => {
                Err(Error::Closed { place: place.to_string(), why: "does not expect a copy".into() })
            }
        }
    }
}

/// Something that is wrong with a ledger, or may soon be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Where: a file, a namespace, a lane, a job.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl Finding {
    /// A finding.
    pub fn new(place: impl fmt::Display, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.to_string(), what: what.into(), fix: fix.into() }
    }
}

/// Refuses what a copy would refuse of its source, and what a target could not take, without changing anything.
pub async fn may_leave(from: &dyn Store, now: Timestamp) -> Result<()> {
    let overview = from.queues(QueueFilter::default()).await?;
    if let Some(fault) = overview.unreadable.first() {
        return Err(fault.clone());
    }
    let mut whole = audit::Whole::default();
    for (queue, tallies) in overview.queues {
        let Some(contents) = from.export(Some(queue.namespace.clone())).await?.contents else { continue };
        let held = contents.held(now);
        if held.is_some() {
            let to = Mark::Leaving { to: String::new() };
            Openness::Open.after(&to, &Evidence { held, is_used: true }, &queue.namespace)?;
        }
        let mut found = audit::contradictions(&contents, &tallies);
        found.extend(whole.add(&contents));
        if let Some(Finding { place, what, .. }) = found.into_iter().next() {
            let why = format!("can't be copied: {what}; `doctor` tells what to do");
            return Err(Error::Closed { place, why });
        }
    }
    Ok(())
}

/// Copies all of a ledger into an empty one; how many namespaces and jobs. `names` are the two ledgers' addresses.
///
/// The source takes no more writes from then on. Done again after an interruption, it goes on where it was; done again
/// after that, it changes nothing.
pub async fn copy(from: &dyn Store, to: &dyn Store, names: (&str, &str), now: Timestamp) -> Result<(usize, usize)> {
    let (source, target) = (openness(from).await?, openness(to).await?);
    let has_left = source == Openness::Moved { to: names.1.to_owned() };
    let was_done = has_left && target == Openness::Arrived { from: names.0.to_owned() };
    if !has_left {
        may_leave(from, now).await?;
    }
    if !was_done {
        to.mark(Mark::Arriving { from: names.0.to_owned() }).await?;
        if let Err(fault) = from.mark(Mark::Leaving { to: names.1.to_owned() }).await {
            if !has_left {
                to.mark(Mark::Withdrawn).await?;
            }
            return Err(fault);
        }
    }
    // From here on nothing changes in the source.
    let overview = from.queues(QueueFilter::default()).await?;
    if let Some(fault) = overview.unreadable.first() {
        return Err(fault.clone());
    }
    if !was_done {
        to.import(from.export(None).await?).await?;
        for (queue, _) in &overview.queues {
            to.import(from.export(Some(queue.namespace.clone())).await?).await?;
        }
        to.mark(Mark::Arrived).await?;
    }
    let jobs: u64 = overview.queues.iter().flat_map(|(_, tallies)| tallies.values()).sum();
    Ok((overview.queues.len(), usize::try_from(jobs).unwrap_or(usize::MAX)))
}

/// Gives an unfinished copy up: the source takes writes again. The target, where there is one, is to be thrown away.
///
/// Only a target that is not whole lets it: from any other the jobs may be handed out, or have gone on from there.
pub async fn give_up_copy(from: &dyn Store, to: Option<&dyn Store>, names: (&str, &str)) -> Result<()> {
    if let Some(to) = to {
        let is_unfinished = match openness(to).await? {
            Openness::Arriving { from } => from == names.0,
            Openness::Open => to.queues(QueueFilter::default()).await?.queues.is_empty(),
            Openness::Moved { .. } | Openness::Arrived { .. } => false,
        };
        if !is_unfinished {
            let why = format!("is no unfinished copy of {}: its jobs may be at work there, or have gone on", names.0);
            return Err(Error::Closed { place: names.1.to_owned(), why });
        }
    }
    from.mark(Mark::Staying { to: names.1.to_owned() }).await
}

async fn openness(store: &dyn Store) -> Result<Openness> {
    Ok(store.export(None).await?.common.openness)
}
