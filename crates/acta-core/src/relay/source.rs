//! The seam to the application's database.

use async_trait::async_trait;

use super::{Reason, Row};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::policy::Span;

/// What a relay has taken.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// In the order of their numbers.
    pub rows: Vec<Row>,
    /// The instant of the source's clock, where there are rows.
    pub now: Timestamp,
    /// Whether there was anything to look at: then another look is due at once.
    pub has_found: bool,
}

/// How an outbox stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// To be taken.
    pub pending: u64,
    /// With a relay.
    pub taken: u64,
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
}

/// A row in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// As it was staged.
    pub row: Row,
    /// When it was staged.
    pub staged_at: Timestamp,
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
/// Instants are the source's own. A verb that names a token changes only rows that are held under it.
#[async_trait]
pub trait Source: Send + Sync + std::fmt::Debug {
    /// The id of this outbox, given once when its table was made.
    async fn id(&self) -> Result<String>;
    /// Takes up to `most` rows for so long a time, of each line a run from its first row on; rows that stand behind another are
    /// parked. What another relay has held too long is taken over.
    async fn take(&self, token: &str, most: usize, hold: Span) -> Result<Taken>;
    /// They are delivered: they go, and what was parked behind them comes.
    async fn remove(&self, token: &str, rows: &[&Row]) -> Result<()>;
    /// They are as they were before they were taken.
    async fn give_back(&self, token: &str, ids: &[i64]) -> Result<()>;
    /// The ledger has refused the first one, which is tried again after the delay; what stands behind it waits with it.
    async fn defer(&self, token: &str, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()>;
    /// The row is put aside, and its line goes on.
    async fn quarantine(&self, token: &str, row: &Row, reason: &Reason) -> Result<()>;
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
