//! What a relay decides: what becomes of the rows of an outbox, what a refusal does to them, and when it looks again.
//!
//! The source holds the rows and does what is said here; nothing in this module does I/O or reads a clock.

mod batch;
mod pace;
mod row;
mod source;
mod staged;

use std::time::Duration;

use crate::policy::Span;

pub use batch::{Batch, Cut};
pub use pace::{Found, Next, Pace, after_refusal};
pub use row::{Arrival, Row, delivery_key};
pub use source::{Discarded, Held, Look, Quarantined, Source, Standing, Which, Why};
pub use staged::Staged;

/// How long a relay has an outbox to itself: so long its rows wait where it has died. It says so again in a third of that time.
pub const HOLD: Span = Span::of(Duration::from_secs(10));
/// How long it waits for the ledger's answer.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How many rows a relay delivers at once.
pub const MOST_TAKEN: usize = 1_000;
/// How many times the ledger may refuse a row before it is put into quarantine.
pub const MOST_REFUSALS: u32 = 5;
/// How long after a row may have arrived for the first time that is still known to the ledger for certain. Later nobody can tell
/// whether it has, and it is put into quarantine instead.
pub const KNOWN_FOR: Span = Span::of(Duration::from_hours(89 * 24));

/// What is wrong with a row that is put into quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is no job: what is wrong with it.
    Malformed(String),
    /// The ledger has refused it as often as it may: what it said last.
    Refused(String),
    /// Its delivery was closed: somebody else put it aside, or discarded it, and did not come to say so in the outbox.
    Closed,
    /// Nobody knows whether it was delivered.
    OutcomeUnknown,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "malformed: {what}"),
            Self::Refused(what) => write!(f, "refused {MOST_REFUSALS} times, at last: {what}"),
            Self::Closed => write!(f, "closed: it was being put aside or discarded before, and has not arrived"),
            Self::OutcomeUnknown => write!(
                f,
                "outcome unknown: it may have arrived more than {} days ago, and the ledger has forgotten by now whether it has",
                KNOWN_FOR.as_millis() / 86_400_000
            ),
        }
    }
}
