//! What a holder says while it works.

use serde::Serialize;

use super::settle::Claimant;
use crate::clock::Timestamp;
use crate::id::JobId;
use crate::json::Json;
use crate::name::Namespace;
use crate::policy::Span;
use crate::vitals::Presence;

/// Leases to extend, of one namespace, and the worker that holds them: it may show itself though it holds none.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    /// Where.
    pub namespace: Namespace,
    /// Which.
    pub beats: Vec<(JobId, Claimant)>,
    /// By how much from now on; never shortens. Otherwise what job or queue says.
    pub lease: Option<Span>,
    /// The worker that they are from, where it shows itself.
    pub worker: Option<Presence>,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Beat {
    /// Until when the job is held now.
    pub lease_expires_at: Timestamp,
    /// Somebody wants it stopped: stop, and settle.
    pub cancel_requested: bool,
}

/// Something that a holder says about its job.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where.
    pub namespace: Namespace,
    /// Which.
    pub id: JobId,
    /// Who.
    pub claimant: Claimant,
    /// What.
    pub news: News,
}

/// What a holder says.
#[derive(Clone, Debug)]
pub enum News {
    /// It started.
    Started,
    /// How far it is; at most 4 KiB.
    Progress(String),
    /// A step's result, kept once: the first result of a name stays.
    Step {
        /// Its name, unique in the job.
        name: String,
        /// Its result.
        value: Json,
    },
}
