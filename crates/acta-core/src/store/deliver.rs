//! What an outbox hands over.

use super::NewJob;
use crate::id::JobId;
use crate::name::{Label, Namespace};
use crate::state::State;

/// Jobs that come from an outbox, each under the key of its delivery.
///
/// A delivery's key is the outbox's own, and has nothing to do with the [`Dedup`](super::Dedup) of its job: a job may have both. It is
/// kept for as long as tombstones are, whatever becomes of the job.
#[derive(Clone, Debug)]
pub struct Deliver {
    /// Where to.
    pub namespace: Namespace,
    /// What is to be done.
    pub deliveries: Deliveries,
}

/// What is to be done with deliveries, all or none; one answer each, in order.
#[derive(Clone, Debug)]
pub enum Deliveries {
    /// Add these jobs, but for those whose delivery has arrived before, or is closed.
    Arrive(Vec<(Label, NewJob)>),
    /// Let none of these arrive any more.
    Close(Vec<Label>),
    /// Let these arrive that were closed.
    Reopen(Vec<Label>),
}

/// What became of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It has arrived just now.
    Now {
        /// Its job, or the one that holds the job's deduplication key.
        id: JobId,
        /// Whether a job was added.
        created: bool,
        /// The state of that job.
        state: State,
    },
    /// It had arrived before, as this job.
    Before(JobId),
    /// It may not arrive.
    Closed,
    /// It has not arrived, and may.
    Open,
}
