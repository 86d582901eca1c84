//! Who works on a namespace, and how much happens there: kept beside the jobs, and no part of them.
//!
//! Neither decides anything about a job. A copy of a ledger leaves both behind.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::job::Tally;
use crate::name::Label;
use crate::policy::{MINUTES_KEPT, WORKER_LOST};
use crate::state::State;

/// What a worker process says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// Drawn when it began; no two have the same.
    pub id: Label,
    /// The name under which it claims.
    pub robot: Label,
    /// Its machine.
    pub host: Label,
    /// Its process there.
    pub pid: u32,
    /// Its program's version.
    pub version: Label,
    /// How many jobs it runs at once at the most.
    pub concurrency: u32,
    /// How many it runs.
    pub running: u32,
}

/// Whether a worker is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Here(Card),
    /// It has ended; its id.
    Gone(Label),
}

/// A worker as the ledger knows it. The instants are of the ledger's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// What it said last.
    #[serde(flatten)]
    pub card: Card,
    /// When it was first heard of.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub seen_at: Timestamp,
}

impl Registered {
    /// Whether it has been silent for so long that it is taken for dead.
    pub fn is_lost(&self, now: Timestamp) -> bool {
        now.since_ms(self.seen_at) > WORKER_LOST.as_millis()
    }
}

/// A worker as everybody sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    /// Who.
    #[serde(flatten)]
    pub worker: Registered,
    /// Nothing has been heard of it for [`WORKER_LOST`].
    pub lost: bool,
}

/// How many jobs took which step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flow {
    /// Enqueued.
    pub added: u64,
    /// Handed out; a job as often as it was.
    pub claimed: u64,
    /// Ended well.
    pub succeeded: u64,
    /// Failed for good: of its own, by a lost lease too many, or since it expired. A failure that is tried again is none.
    pub failed: u64,
    /// Cancelled.
    pub cancelled: u64,
}

impl Flow {
    /// What a job's move from one count to another is; `None` is outside.
    pub fn of(from: Option<Tally>, to: Option<Tally>) -> Self {
        let mut flow = Self::default();
        let Some(Tally(to, _)) = to else { return flow };
        let Some(Tally(from, _)) = from else { return Self { added: 1, ..flow } };
        match to {
            State::Claimed if !from.is_held() => flow.claimed = 1,
            State::Succeeded if !from.is_final() => flow.succeeded = 1,
            State::Failed if !from.is_final() => flow.failed = 1,
            State::Cancelled if !from.is_final() => flow.cancelled = 1,
            State::Blocked
            | State::Ready
            | State::Scheduled
            | State::Claimed
            | State::Running
            | State::Waiting
            | State::Succeeded
            | State::Failed
            | State::Cancelled => {}
        }
        flow
    }

    /// Whether nothing happened.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Flow {
    fn add_assign(&mut self, more: Self) {
        self.added += more.added;
        self.claimed += more.claimed;
        self.succeeded += more.succeeded;
        self.failed += more.failed;
        self.cancelled += more.cancelled;
    }
}

/// A minute in which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Minute {
    /// When it began.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub flow: Flow,
}

/// One minute.
const MINUTE_MS: i64 = 60_000;

/// When the minute of an instant began, in UTC.
pub fn minute_of(instant: Timestamp) -> Timestamp {
    Timestamp::from_millis(instant.as_millis() / MINUTE_MS * MINUTE_MS)
}

/// When the first of the last `minutes` began, that of `now` among them; none is longer ago than they are kept.
pub fn first_minute(now: Timestamp, minutes: usize) -> Timestamp {
    let minutes = i64::try_from(minutes.clamp(1, MINUTES_KEPT)).unwrap_or(1);
    minute_of(now).plus_ms(-(minutes - 1) * MINUTE_MS)
}

/// What a keeper of whole books keeps beside a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// The workers, by id.
    pub workers: BTreeMap<Label, Registered>,
    /// What happened, by minute.
    pub minutes: BTreeMap<Timestamp, Flow>,
}

impl Vitals {
    /// Adds what happened in minutes.
    pub fn add(&mut self, minutes: &BTreeMap<Timestamp, Flow>) {
        for (minute, flow) in minutes {
            *self.minutes.entry(*minute).or_default() += *flow;
        }
    }
}

/// What goes on in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Now, by the ledger's clock.
    pub at: Timestamp,
    /// Its workers, by when they began; at most 1,000, those that were seen last.
    pub workers: Vec<WorkerView>,
    /// The minutes that were asked for in which something happened, oldest first.
    pub minutes: Vec<Minute>,
}

impl Activity {
    /// What happened in `count` minutes, the last of which is `back` minutes before the present one.
    pub fn over(&self, back: usize, count: usize) -> Flow {
        let until = first_minute(self.at, back + 1);
        let from = first_minute(self.at, back + count);
        let mut sum = Flow::default();
        let within = self.minutes.iter().filter(|minute| (from..=until).contains(&minute.at));
        within.for_each(|minute| sum += minute.flow);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_moves_only_these_are_counted() {
        let tallies = || State::ALL.into_iter().map(|state| Some(Tally(state, false))).chain([None]);
        for from in tallies() {
            for to in tallies() {
                let flow = Flow::of(from, to);
                let sum = flow.added + flow.claimed + flow.succeeded + flow.failed + flow.cancelled;
                let comes = from.is_none() && to.is_some();
                let state = |tally: Option<Tally>| tally.map(|Tally(state, _)| state);
                let ends = state(to).is_some_and(State::is_final) && state(from).is_some_and(|from| !from.is_final());
                let is_taken = state(to) == Some(State::Claimed) && state(from).is_some_and(|from| !from.is_held());
                assert_eq!(sum, u64::from(comes || ends || is_taken), "{from:?} to {to:?}");
                assert_eq!((flow.added, flow.claimed), (u64::from(comes), u64::from(is_taken && !comes)));
            }
        }
    }

    #[test]
    fn windows_of_minutes_end_where_the_next_begin() {
        let at = Timestamp::from_millis(100 * MINUTE_MS + 59_999);
        let minute = |number: i64, added| Minute {
            at: Timestamp::from_millis(number * MINUTE_MS),
            flow: Flow { added, ..Flow::default() },
        };
        let minutes = vec![minute(40, 1), minute(41, 10), minute(99, 100), minute(100, 1_000)];
        let activity = Activity { at, workers: Vec::new(), minutes };
        let added = |back, count| activity.over(back, count).added;
        assert_eq!((added(0, 1), added(1, 1), added(0, 60), added(1, 60)), (1_000, 100, 1_110, 111));
    }
}
