//! What an application stages.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::name::{Label, Namespace};
use crate::policy::{Backoff, Span};
use crate::store::NewJob;
use crate::traceparent::Traceparent;

/// What else may be said of a job: the words of the ledger's own `enqueue_many`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) while_live: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Option<Traceparent>,
}

/// A row that is about to be staged: what stands in the columns that are the application's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The queue, as its path.
    pub namespace: String,
    /// The job definition.
    pub name: Option<String>,
    /// JSON.
    pub payload: String,
    /// The line to stand in.
    pub lane: Option<String>,
    /// The application's own deduplication key.
    pub dedup_key: Option<String>,
    /// What else is said of the job, as a JSON object.
    pub options: Option<String>,
}

impl Staged {
    /// The row of a job. What no ledger would take is refused here, while the application can still do something about it.
    pub fn of(namespace: &Namespace, job: &NewJob) -> Result<Self> {
        job.check(namespace.family(), None)?;
        let options = Options {
            priority: job.priority,
            run_at: job.run_at,
            expires_at: job.expires_at,
            lease: job.lease,
            key: job.key.clone(),
            while_live: job.dedup.as_ref().filter(|dedup| dedup.while_live).map(|_| true),
            max_attempts: job.max_attempts,
            retryable: job.retryable,
            backoff: job.backoff,
            traceparent: job.traceparent.clone(),
        };
        let wrong = |fault: serde_json::Error| Error::invalid("options", "", format!("can't be written: {fault}"));
        let options = serde_json::to_string(&options).map_err(wrong)?;
        Ok(Self {
            namespace: namespace.to_string(),
            name: job.name.as_ref().map(ToString::to_string),
            payload: job.payload.as_str().to_owned(),
            lane: job.lane.as_ref().map(ToString::to_string),
            dedup_key: job.dedup.as_ref().map(|dedup| dedup.key.to_string()),
            options: (options != "{}").then_some(options),
        })
    }
}
