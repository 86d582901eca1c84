//! The seam: what every ledger offers, whatever it is kept in.

mod claim;
mod deliver;
mod enqueue;
mod list;
mod operate;
mod port;
mod report;
mod settle;

use std::path::PathBuf;

use async_trait::async_trait;

use crate::error::Result;
use crate::explain::{Explanation, LaneView};
use crate::history::Entry;
use crate::id::JobId;
use crate::json::Json;
use crate::name::{Label, Namespace};

pub use claim::{Claim, ClaimAnswer, ClaimOutcome, LeftOut, Nothing, Trace, Why};
pub use deliver::{Deliver, Delivered, Deliveries};
pub use enqueue::{Dedup, Enqueue, Enqueued, NewJob};
pub use list::{Found, JobFilter, LaneFilter, Overview, Page, QueueFilter};
pub use operate::{Action, Define, Hold, Operated, Operation};
pub use port::{Evidence, Finding, Mark, Openness, Parcel, copy, give_up_copy, may_leave};
pub use report::{Beat, Heartbeats, News, Report};
pub use settle::{Claimant, Failure, Outcome, SettleAnswer, Settlement, Wave};

/// A durable ledger. Each verb is one atomic operation: it has happened, durably, when it answers, or not at all.
#[async_trait]
pub trait Store: Send + Sync {
    /// Adds jobs, all or none; one answer a job, in order. The first use of a namespace makes it.
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>>;
    /// Takes what comes from an outbox, each delivery once; or closes deliveries, or reopens them. One answer each, in order.
    async fn deliver(&self, deliver: Deliver) -> Result<Vec<Delivered>>;
    /// Takes up to `count` jobs.
    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer>;
    /// Settles a wave: each settlement is judged by its own fence, one answer each, in order.
    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>>;
    /// Settles a wave and claims, in one commit.
    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)>;
    /// Extends leases; one answer each, in order. Tells that a worker is there, or has ended.
    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>>;
    /// Start, progress and steps of a held job.
    async fn report(&self, report: Report) -> Result<()>;
    /// An operator's act on jobs; one answer each, in order.
    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>>;
    /// Pauses or resumes a namespace or a lane.
    async fn hold(&self, hold: Hold) -> Result<()>;
    /// Brings in what is due, as a claim would, without claiming; how many jobs changed.
    async fn recover(&self, namespace: Namespace) -> Result<usize>;
    /// Removes ended jobs after their retention and expired tombstones; how many jobs and keys went, at most
    /// `limit` of each. Minutes and workers of more than a day ago go, too.
    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)>;
    /// Registers a job definition, or what a queue says about its jobs.
    async fn define(&self, define: Define) -> Result<()>;
    /// Waits until a claim in the namespace may find something that it did not find before.
    ///
    /// With `None` it answers at once: with a number that stands for how things are now. With such a number it answers
    /// once another one stands for them. The numbers of one store mean nothing to another, and have no order. It may
    /// answer early, and what time alone brings about it does not tell; where changes can't be noticed it may answer late:
    /// whoever waits looks by itself now and then.
    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64>;

    /// One job.
    async fn job(&self, id: JobId) -> Result<Found>;
    /// The job that holds a deduplication key, if its row is still there.
    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>>;
    /// Jobs, newest first, a page at a time.
    async fn jobs(&self, filter: JobFilter) -> Result<Page>;
    /// The record of a job, oldest first.
    async fn history(&self, id: JobId) -> Result<Vec<Entry>>;
    /// The kept results of a job's steps and waits.
    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>>;
    /// Why a job is where it is, and what will move it.
    async fn explain(&self, id: JobId) -> Result<Explanation>;
    /// The lanes of a namespace that have live members or are paused, by name.
    async fn lanes(&self, filter: LaneFilter) -> Result<Vec<LaneView>>;
    /// Namespaces with their counts, and with what goes on in them.
    async fn queues(&self, filter: QueueFilter) -> Result<Overview>;

    /// A namespace with all that is kept of it, or only what all namespaces have in common.
    async fn export(&self, namespace: Option<Namespace>) -> Result<Parcel>;
    /// Takes in a part of a copy, wholly or not at all; one that is there already stays as it is.
    async fn import(&self, parcel: Parcel) -> Result<()>;
    /// Takes a step of a copy.
    async fn mark(&self, mark: Mark) -> Result<()>;
    /// Writes a copy of the whole ledger as it is now to `path`, where nothing may be yet, while others work with it.
    async fn backup(&self, path: PathBuf) -> Result<()>;
    /// What is wrong with the substrate itself.
    async fn examine(&self) -> Result<Vec<Finding>>;
    /// Whether calls that are made at the same time go on at the same time, rather than one after the other.
    fn is_parallel(&self) -> bool;
}
