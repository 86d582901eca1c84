//! A shelf that many callers share is a store.

use std::future::Future;
use std::path::PathBuf;

use async_trait::async_trait;

use super::{Keeper, Shelf};
use crate::error::Result;
use crate::explain::{Explanation, LaneView};
use crate::history::Entry;
use crate::id::JobId;
use crate::json::Json;
use crate::name::{Label, Namespace};
use crate::store::{
    Beat, Claim, ClaimAnswer, Define, Deliver, Delivered, Enqueue, Enqueued, Finding, Found, Heartbeats, Hold,
    JobFilter, LaneFilter, Mark, Operated, Operation, Overview, Page, Parcel, QueueFilter, Report, SettleAnswer, Store,
    Wave,
};

/// What a verb does to the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads them.
    Look,
    /// It may change them: nobody else may meanwhile.
    Change,
}

/// Lets many callers use one shelf, one after the other. Whatever does is a [`Store`].
pub trait Shared: Send + Sync {
    /// What keeps the books.
    type Keeper: Keeper + 'static;

    /// Runs one verb.
    fn run<T: Send + 'static>(
        &self,
        access: Access,
        verb: impl FnOnce(&mut Shelf<Self::Keeper>) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send;

    /// [`Store::changed`].
    fn changed(&self, namespace: Namespace, seen: Option<u64>) -> impl Future<Output = Result<u64>> + Send;
}

#[async_trait]
impl<S: Shared> Store for S {
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>> {
        self.run(Access::Change, move |shelf| shelf.enqueue(&enqueue)).await
    }

    async fn deliver(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        self.run(Access::Change, move |shelf| shelf.deliver(&deliver)).await
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer> {
        self.run(Access::Change, move |shelf| shelf.claim(&claim)).await
    }

    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>> {
        self.run(Access::Change, move |shelf| shelf.settle(&wave)).await
    }

    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        self.run(Access::Change, move |shelf| shelf.exchange(&wave, &claim)).await
    }

    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        self.run(Access::Change, move |shelf| shelf.heartbeat(&beats)).await
    }

    async fn report(&self, report: Report) -> Result<()> {
        self.run(Access::Change, move |shelf| shelf.report(&report)).await
    }

    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        self.run(Access::Change, move |shelf| shelf.operate(&operation)).await
    }

    async fn hold(&self, hold: Hold) -> Result<()> {
        self.run(Access::Change, move |shelf| shelf.hold(&hold)).await
    }

    async fn recover(&self, namespace: Namespace) -> Result<usize> {
        self.run(Access::Change, move |shelf| shelf.recover(&namespace)).await
    }

    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)> {
        self.run(Access::Change, move |shelf| shelf.prune(&namespace, limit)).await
    }

    async fn define(&self, define: Define) -> Result<()> {
        self.run(Access::Change, move |shelf| shelf.define(define)).await
    }
    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        Shared::changed(self, namespace, seen).await
    }

    async fn job(&self, id: JobId) -> Result<Found> {
        self.run(Access::Look, move |shelf| shelf.job(&id)).await
    }

    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>> {
        self.run(Access::Look, move |shelf| shelf.key_holder(&namespace, &key)).await
    }

    async fn jobs(&self, filter: JobFilter) -> Result<Page> {
        self.run(Access::Look, move |shelf| shelf.jobs(&filter)).await
    }

    async fn history(&self, id: JobId) -> Result<Vec<Entry>> {
        self.run(Access::Look, move |shelf| shelf.history(&id)).await
    }

    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>> {
        self.run(Access::Look, move |shelf| shelf.steps(&id)).await
    }

    async fn explain(&self, id: JobId) -> Result<Explanation> {
        self.run(Access::Look, move |shelf| shelf.explain(&id)).await
    }

    async fn lanes(&self, filter: LaneFilter) -> Result<Vec<LaneView>> {
        self.run(Access::Look, move |shelf| shelf.lanes(&filter)).await
    }

    async fn queues(&self, filter: QueueFilter) -> Result<Overview> {
        self.run(Access::Look, move |shelf| shelf.queues(&filter)).await
    }

    async fn export(&self, namespace: Option<Namespace>) -> Result<Parcel> {
        self.run(Access::Look, move |shelf| shelf.export(namespace.as_ref())).await
    }

    async fn import(&self, parcel: Parcel) -> Result<()> {
        self.run(Access::Change, move |shelf| shelf.import(parcel)).await
    }

    async fn mark(&self, mark: Mark) -> Result<()> {
        self.run(Access::Change, move |shelf| shelf.mark(&mark)).await
    }

    async fn backup(&self, path: PathBuf) -> Result<()> {
        self.run(Access::Change, move |shelf| shelf.backup(&path)).await
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.run(Access::Look, Shelf::examine).await
    }

    fn is_parallel(&self) -> bool {
        false
    }
}
