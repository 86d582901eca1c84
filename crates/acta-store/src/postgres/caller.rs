//! Enqueues in a transaction of the caller's: the function that programs of any language call, on the caller's connection.

use acta_core::store::{Enqueue, Enqueued, NewJob};
use acta_core::{Backoff, Error, Family, JobId, Json, Label, Name, Result, Span, State, Timestamp, Traceparent};
use serde::Serialize;

use super::PostgresStore;
use super::session::statement;

/// The statement that adds jobs: its parameters are the namespace and the jobs as JSON, both as text, and its rows what [`read`]
/// takes.
pub(super) const STATEMENT: &str = statement!("enqueue_many");

/// The most attempts that the function takes. Nobody counts so far.
const MOST_ATTEMPTS: u32 = 999_999_999;

/// A job as the function takes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'j> {
    payload: &'j Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'j Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<&'j Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'j Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedup_key: Option<&'j Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    while_live: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'j Traceparent>,
}

impl<'j> Told<'j> {
    fn of(job: &'j NewJob) -> Self {
        let dedup = job.dedup.as_ref();
        Self {
            payload: &job.payload,
            name: job.name.as_ref(),
            lane: job.lane.as_ref(),
            priority: job.priority,
            run_at: job.run_at,
            expires_at: job.expires_at,
            lease: job.lease,
            key: job.key.as_ref(),
            dedup_key: dedup.map(|dedup| &dedup.key),
            while_live: dedup.map(|dedup| dedup.while_live),
            max_attempts: job.max_attempts.map(|attempts| attempts.min(MOST_ATTEMPTS)),
            retryable: job.retryable,
            backoff: job.backoff,
            traceparent: job.traceparent.as_ref(),
        }
    }
}

/// The jobs as the statement takes them.
pub(super) fn written(enqueue: &Enqueue) -> Result<String> {
    let told: Vec<Told<'_>> = enqueue.jobs.iter().map(Told::of).collect();
    serde_json::to_string(&told).map_err(|fault| Error::invalid("jobs", "", format!("can't be written: {fault}")))
}

/// An answer.
pub(super) fn read((id, created, state, payload_differs): (&str, bool, &str, bool)) -> Result<Enqueued> {
    let unknown = || Error::Unreadable { place: id.to_owned(), why: format!("is in the unknown state {state:?}") };
    Ok(Enqueued {
        id: JobId::trusted(id),
        created,
        state: State::from_word(state).ok_or_else(unknown)?,
        payload_differs,
    })
}

/// What a caller's connection needs to know of the ledger.
pub(super) struct Scene {
    pub(super) place: String,
    pub(super) family: Option<Family>,
}

impl Scene {
    pub(super) fn new(store: &PostgresStore, enqueue: &Enqueue) -> Self {
        let place = format!("the database of this connection (the ledger is in {})", store.db.place());
        Self { place, family: Some(enqueue.namespace.family()) }
    }
}
