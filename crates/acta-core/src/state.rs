//! The states of a job.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a job stands. [`crate::transition`] holds every legal step between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Behind the head of its lane; never in the claim scan. The head's end moves it.
    Blocked,
    /// A candidate now, unless paused. A claim moves it.
    Ready,
    /// A candidate once its `runAt` has come. A claim or recover moves it then.
    Scheduled,
    /// Handed out under a lease. Its holder moves it, or the claim that meets the lapsed lease.
    Claimed,
    /// Its holder said that it started.
    Running,
    /// In a durable wait for a signal, without worker or lease. The signal moves it, or the deadline.
    Waiting,
    /// Done. Nothing moves it.
    Succeeded,
    /// Ended by a failure. Only a restart moves it.
    Failed,
    /// Ended by somebody's wish. Only a restart moves it.
    Cancelled,
}

impl State {
    /// All states, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Blocked,
        Self::Ready,
        Self::Scheduled,
        Self::Claimed,
        Self::Running,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The ledger's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state that has this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// The small number that stands for it in a database: its place in [`State::ALL`].
    pub fn code(self) -> u8 {
        match self {
            Self::Blocked => 0,
            Self::Ready => 1,
            Self::Scheduled => 2,
            Self::Claimed => 3,
            Self::Running => 4,
            Self::Waiting => 5,
            Self::Succeeded => 6,
            Self::Failed => 7,
            Self::Cancelled => 8,
        }
    }

    /// The state that [`State::code`] stands for.
    pub fn from_code(code: i64) -> Option<Self> {
        usize::try_from(code).ok().and_then(|code| Self::ALL.get(code).copied())
    }

    /// Ended: succeeded, failed or cancelled.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Under a lease: claimed or running.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Claimed | Self::Running)
    }

    /// Alive and not behind another member of its lane.
    pub fn is_head(self) -> bool {
        match self {
            Self::Ready | Self::Scheduled | Self::Claimed | Self::Running | Self::Waiting => true,
            Self::Blocked | Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
