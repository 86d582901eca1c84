//! What stands beside the items of a file, item by item.

use std::collections::VecDeque;

use acta_core::job::{KeyHold, Settled};
use acta_core::{Backoff, Json, Name, Span, State, Timestamp};
use serde::{Deserialize, Serialize};

/// The highest number that is read: a count goes on from it, far below the end of all numbers.
pub(super) const MOST_NUMBER: u64 = 1 << 60;

/// What the ledger knows of an item and does not show in it; only what can't be told from the item itself.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Aside {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retention: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prune_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_hold: Option<Hold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settled: Option<Mark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait: Option<Name>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(super) signals: VecDeque<(Name, Json)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<(String, Json)>,
}

/// How a job holds its deduplication key, where that is not until its tombstone expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Hold {
    None,
    WhileLive,
    Kept,
}

impl From<KeyHold> for Hold {
    fn from(hold: KeyHold) -> Self {
        match hold {
            KeyHold::None => Self::None,
            KeyHold::WhileLive => Self::WhileLive,
            KeyHold::Kept => Self::Kept,
        }
    }
}

impl From<Hold> for KeyHold {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::None => Self::None,
            Hold::WhileLive => Self::WhileLive,
            Hold::Kept => Self::Kept,
        }
    }
}

/// How the last claim was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    outcome: i64,
    state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_at: Option<Timestamp>,
}

impl From<Settled> for Mark {
    fn from(Settled { mark, state, run_at }: Settled) -> Self {
        Self { outcome: mark, state, run_at }
    }
}

impl From<Mark> for Settled {
    fn from(Mark { outcome: mark, state, run_at }: Mark) -> Self {
        Self { mark, state, run_at }
    }
}
