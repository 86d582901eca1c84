//! A job as the outside sees it.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::JobId;
use crate::job::{Exception, Job};
use crate::json::Json;
use crate::name::{Family, Label, Name, Namespace};
use crate::policy::{DEFAULT_PRIORITY, Span};
use crate::state::State;
use crate::traceparent::Traceparent;

/// The JSON of a job: camelCase, the queue contract's fields first and in its order, nothing that has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// The public id.
    pub id: JobId,
    /// The queue, in the two queue families.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Name>,
    /// The namespace, in a plain one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Name>,
    /// The family's word for the state.
    pub status: &'static str,
    /// What the job works on, byte for byte.
    pub payload: Json,
    /// Claims that count.
    pub attempts: u32,
    /// How many may count.
    pub max_attempts: u32,
    /// Whether a failure may go back to the queue.
    pub retryable: bool,
    /// Who claimed it last; stays after a requeue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<Label>,
    /// When; stays after a requeue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The ledger's own state, where `status` says less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The job definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<Label>,
    /// The priority, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// No candidate before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    /// Ended if not claimed by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The lease asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// Until when its holder has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Timestamp>,
    /// How often it was ever claimed, once it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Leases lost in a row, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_leases: Option<u32>,
    /// The business key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Label>,
    /// The deduplication key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<Label>,
    /// The trace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Traceparent>,
    /// `true` while held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// `true` while its holder is asked to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
    /// What a waiting job waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// What its claimant last said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// When its claimant said that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Its last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<Exception>,
}

/// What a waiting job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The signal's name.
    pub signal: Name,
    /// The deadline, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Item {
    /// The item of `job` in `namespace`.
    pub fn new(namespace: &Namespace, job: &Job) -> Self {
        let Job { identity, standing, detail, .. } = job;
        let family = namespace.family();
        let plain = family == Family::Plain;
        let waiting = standing.state == State::Waiting;
        Self {
            id: identity.id.clone(),
            queue: (!plain).then(|| namespace.name().clone()),
            namespace: plain.then(|| namespace.name().clone()),
            status: family.word(standing.state, standing.business),
            payload: identity.payload.clone(),
            attempts: standing.attempts,
            max_attempts: standing.max_attempts,
            retryable: standing.retryable,
            claimed_by: standing.claimed_by.clone(),
            claimed_at: standing.claimed_at,
            created_at: identity.created_at,
            state: family.word_is_shared(standing.state, standing.business).then_some(standing.state),
            name: identity.name.clone(),
            lane: identity.lane.clone(),
            priority: Some(standing.priority).filter(|&priority| priority != DEFAULT_PRIORITY),
            run_at: standing.run_at,
            expires_at: standing.expires_at,
            lease: identity.lease,
            lease_expires_at: standing.lease_expires_at,
            fence: Some(standing.fence).filter(|&fence| fence > 0),
            lost_leases: Some(standing.lost_leases).filter(|&lost| lost > 0),
            key: identity.key.clone(),
            dedup_key: identity.dedup_key.clone(),
            traceparent: identity.traceparent.clone(),
            paused: standing.paused.then_some(true),
            cancel_requested: standing.cancel_requested.then_some(true),
            wait: detail.wait.clone().filter(|_| waiting).map(|signal| Wait { signal, until: standing.wait_until }),
            progress: detail.progress.clone(),
            started_at: detail.started_at,
            finished_at: standing.finished_at,
            output: detail.output.clone(),
            exception: detail.exception.clone(),
        }
    }
}
