//! Adding jobs.

use crate::clock::Timestamp;
use crate::id::JobId;
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::policy::{Backoff, Span};
use crate::state::State;
use crate::traceparent::Traceparent;

/// Jobs to add.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Where to.
    pub namespace: Namespace,
    /// What; at most 250,000 a call.
    pub jobs: Vec<NewJob>,
}

/// A job to add. What is left open comes from its definition, then its queue, then its family.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The job definition.
    pub name: Option<Name>,
    /// What to work on.
    pub payload: Json,
    /// An ordered line to stand in.
    pub lane: Option<Label>,
    /// 0 to 100, higher first; plain namespaces only.
    pub priority: Option<u8>,
    /// No candidate before.
    pub run_at: Option<Timestamp>,
    /// Failed if not claimed by then.
    pub expires_at: Option<Timestamp>,
    /// The lease of a claim that does not ask for one.
    pub lease: Option<Span>,
    /// A business key, to search by.
    pub key: Option<Label>,
    /// At most one job of this key.
    pub dedup: Option<Dedup>,
    /// How many claims may count.
    pub max_attempts: Option<u32>,
    /// Whether a failure may go back to the queue.
    pub retryable: Option<bool>,
    /// The delay between attempts.
    pub backoff: Option<Backoff>,
    /// The trace that it belongs to.
    pub traceparent: Option<Traceparent>,
}

impl NewJob {
    /// A job with this payload and all else open.
    pub fn new(payload: Json) -> Self {
        Self {
            name: None,
            payload,
            lane: None,
            priority: None,
            run_at: None,
            expires_at: None,
            lease: None,
            key: None,
            dedup: None,
            max_attempts: None,
            retryable: None,
            backoff: None,
            traceparent: None,
        }
    }
}

/// A deduplication key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedup {
    /// The key.
    pub key: Label,
    /// Free it when the job ends, rather than when its tombstone expires.
    pub while_live: bool,
}

/// What became of a job to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id, or the id of the job that holds its key.
    pub id: JobId,
    /// Whether it was added.
    pub created: bool,
    /// The state of that job.
    pub state: State,
    /// Whether the holder of the key has another payload.
    pub payload_differs: bool,
}
