//! The seam to the application's database.

use async_trait::async_trait;

use super::{Reason, Row};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::policy::Span;

/// What a relay sees.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// What may be delivered, in the order of its numbers.
    pub rows: Vec<Row>,
    /// Whether there was anything at all: then another look is due at once.
    pub has_found: bool,
}

/// An outbox that a relay has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Since when rows may have arrived that are still here.
    pub since: Timestamp,
    /// The instant of the source's clock.
    pub now: Timestamp,
}

/// How an outbox stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// To be delivered.
    pub pending: u64,
    /// Behind the first of its line.
    pub parked: u64,
    /// To be tried again later.
    pub deferred: u64,
    /// Refused for good.
    pub quarantined: u64,
    /// When the oldest of those that are still to be delivered was staged.
    pub oldest: Option<Timestamp>,
    /// The instant of the source's clock.
    pub now: Timestamp,
    /// Which relay has it, and until when it has at least.
    pub relay: Option<(String, Timestamp)>,
}

/// A row in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// As it was staged.
    pub row: Row,
    /// Since when it is there.
    pub quarantined_at: Option<Timestamp>,
    /// Why.
    pub fault: Option<String>,
}

/// A row that is gone for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// As it was in quarantine.
    pub quarantined: Quarantined,
    /// When it went.
    pub discarded_at: Timestamp,
    /// What was said of that.
    pub why: Why,
}

/// Who lets rows go for good, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Why {
    /// Who.
    pub actor: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Which rows in quarantine, or of those that went from there for good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Of this queue, by its path.
    pub namespace: Option<String>,
    /// Of this lane.
    pub lane: Option<String>,
    /// These.
    pub ids: Option<Vec<i64>>,
    /// Behind this number.
    pub after: i64,
    /// At most so many.
    pub limit: usize,
}

/// An outbox in the application's own database. Each verb is a transaction of its own, or several; none waits for the ledger.
///
/// Instants are the source's own. What a relay has seen may have changed by the time it says what has become of it: a verb changes
/// nothing then.
#[async_trait]
pub trait Source: Send + Sync + std::fmt::Debug {
    /// The id of this outbox, given once when its table was made.
    async fn id(&self) -> Result<String>;
    /// One relay has the outbox to itself for so long a time, so that no two do the same work; none where another one has it.
    /// `is_clear` if it has seen, since it said so last, that no row was there.
    async fn hold(&self, relay: &str, hold: Span, is_clear: bool) -> Result<Option<Held>>;
    /// The relay has it no longer.
    async fn let_go(&self, relay: &str) -> Result<()>;
    /// The first rows that may be delivered, at most so many, but for those `in_hand`. Rows behind one that waits are parked.
    async fn look(&self, most: usize, in_hand: &[i64]) -> Result<Look>;
    /// They are delivered: they go, and what was parked behind them comes. How many there were; what somebody else has locked stays.
    async fn remove(&self, rows: &[Row]) -> Result<u64>;
    /// The ledger has refused the row, which is tried again after the delay; what stands behind it waits with it.
    async fn defer(&self, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()>;
    /// The row is put aside, and its line goes on.
    async fn quarantine(&self, row: &Row, reason: &Reason) -> Result<()>;
    /// How it stands.
    async fn standing(&self) -> Result<Standing>;
    /// Rows in quarantine, in the order of their numbers.
    async fn quarantined(&self, which: &Which) -> Result<Vec<Quarantined>>;
    /// Rows in quarantine are to be delivered again; how many there were.
    async fn requeue(&self, ids: &[i64]) -> Result<u64>;
    /// Rows in quarantine are kept among the discarded, where they are to be discarded next.
    async fn keep(&self, ids: &[i64], why: &Why) -> Result<()>;
    /// Rows in quarantine go; how many there were.
    async fn discard(&self, ids: &[i64]) -> Result<u64>;
    /// Rows that were kept, in the order of their numbers.
    async fn discarded(&self, which: &Which) -> Result<Vec<Discarded>>;
}
