//! Jobs as types.

use std::time::Duration;

use acta_core::{Backoff, Definition, Label, Name, Namespace, Result, Span};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose values are jobs.
///
/// The constants are its definition. It is registered in the ledger by the first enqueue of a process and by every
/// worker that handles the type, so that a job that is enqueued by its name from elsewhere gets the same. What is left
/// open comes from the queue and its family.
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The definition's name, under which a worker finds the handler: `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`. Never change
    /// it while such jobs are alive.
    const NAME: &'static str;
    /// The path of the namespace it goes to: `<name>`, `queues/<name>` or `transactions/<name>`.
    const QUEUE: &'static str;
    /// A line in which all jobs of this type stand, unless [`Job::lane`] says another.
    const LANE: Option<&'static str> = None;
    /// 0 to 100, higher first; only in a plain namespace.
    const PRIORITY: Option<u8> = None;
    /// How many times it may be tried.
    const MAX_ATTEMPTS: Option<u32> = None;
    /// Whether a failure may be tried again at all.
    const RETRYABLE: Option<bool> = None;
    /// The delay between attempts.
    const BACKOFF: Option<Backoff> = None;
    /// For how long a claim lasts without a heartbeat. A running handler's lease is extended by itself.
    const LEASE: Option<Duration> = None;
    /// How long a finished job is kept.
    const RETENTION: Option<Duration> = None;
    /// Free the deduplication key when the job ends, rather than when its tombstone expires.
    const DEDUP_WHILE_LIVE: bool = false;

    /// The ordered line that this job stands in: of a lane, one runs at a time, in the order of their enqueuing.
    fn lane(&self) -> Option<String> {
        None
    }

    /// A business key, to search by; may repeat.
    fn key(&self) -> Option<String> {
        None
    }

    /// A deduplication key: there is at most one job of it, and a second enqueue is answered with the first's id.
    fn dedup_key(&self) -> Option<String> {
        None
    }
}

/// What the constants of a type say.
pub(crate) fn definition_of<J: Job>() -> Result<Definition> {
    Ok(Definition {
        lane: J::LANE.map(|lane| Label::new("lane", lane)).transpose()?,
        priority: J::PRIORITY,
        max_attempts: J::MAX_ATTEMPTS,
        retryable: J::RETRYABLE,
        backoff: J::BACKOFF,
        lease: J::LEASE.map(Span::of),
        retention: J::RETENTION.map(Span::of),
        ..Definition::new(name_of::<J>()?)
    })
}

pub(crate) fn name_of<J: Job>() -> Result<Name> {
    Name::new("job name", J::NAME)
}

pub(crate) fn namespace_of<J: Job>() -> Result<Namespace> {
    J::QUEUE.parse()
}
