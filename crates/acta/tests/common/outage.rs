//! A store that is out of reach whenever the test says so.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use acta_core::explain::{Explanation, LaneView};
use acta_core::history::Entry;
use acta_core::store::{
    Beat, Claim, ClaimAnswer, Define, Deliver, Delivered, Enqueue, Enqueued, Finding, Found, Heartbeats, Hold,
    JobFilter, LaneFilter, Mark, Operated, Operation, Overview, Page, Parcel, QueueFilter, Report, SettleAnswer, Wave,
};
use acta_core::{Error, JobId, Json, Label, Namespace, Result, Store};
use async_trait::async_trait;
use tokio::sync::watch;

/// A store, and how many of its next calls of which verbs are not done.
pub(crate) struct Outage {
    store: Arc<dyn Store>,
    failing: Mutex<BTreeMap<&'static str, usize>>,
    /// How often each verb was answered.
    calls: watch::Sender<BTreeMap<&'static str, usize>>,
}

impl Outage {
    pub(crate) fn over(store: Arc<dyn Store>) -> Self {
        Self { store, failing: Mutex::default(), calls: watch::Sender::default() }
    }

    /// The next so many calls of a verb are not done.
    pub(crate) fn fail(&self, verb: &'static str, times: usize) {
        self.failing.lock().unwrap().insert(verb, times);
    }

    /// How often a verb was answered.
    pub(crate) fn calls(&self, verb: &str) -> usize {
        self.calls.borrow().get(verb).copied().unwrap_or_default()
    }

    /// Waits until a verb was answered so many times in all.
    pub(crate) async fn until_called(&self, verb: &str, times: usize) {
        let mut calls = self.calls.subscribe();
        calls.wait_for(|calls| calls.get(verb).copied().unwrap_or_default() >= times).await.unwrap();
    }

    /// Waits until a verb that is called again and again was answered so many times more.
    pub(crate) async fn until_called_again(&self, verb: &str, times: usize) {
        self.until_called(verb, self.calls(verb) + times).await;
    }

    /// Tells of every answer from now on.
    pub(crate) fn answers(&self) -> watch::Receiver<BTreeMap<&'static str, usize>> {
        self.calls.subscribe()
    }

    /// A call that was answered, or was not done, is counted then.
    async fn call<T>(&self, verb: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = if self.fails(verb) {
            Err(Error::Unavailable { place: verb.into(), why: "is out of reach".into() })
        } else {
            call.await
        };
        self.calls.send_modify(|calls| *calls.entry(verb).or_default() += 1);
        answer
    }

    fn fails(&self, verb: &'static str) -> bool {
        match self.failing.lock().unwrap().get_mut(verb) {
            Some(times) if *times > 0 => {
                *times -= 1;
                true
            }
            _ => false,
        }
    }
}

#[async_trait]
impl Store for Outage {
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>> {
        self.call("enqueue", self.store.enqueue(enqueue)).await
    }

    async fn deliver(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        self.call("deliver", self.store.deliver(deliver)).await
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer> {
        self.call("claim", self.store.claim(claim)).await
    }

    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>> {
        self.call("settle", self.store.settle(wave)).await
    }

    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        self.call("exchange", self.store.exchange(wave, claim)).await
    }

    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        self.call("heartbeat", self.store.heartbeat(beats)).await
    }

    async fn report(&self, report: Report) -> Result<()> {
        self.call("report", self.store.report(report)).await
    }

    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        self.call("operate", self.store.operate(operation)).await
    }

    async fn hold(&self, hold: Hold) -> Result<()> {
        self.call("hold", self.store.hold(hold)).await
    }

    async fn recover(&self, namespace: Namespace) -> Result<usize> {
        self.call("recover", self.store.recover(namespace)).await
    }

    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)> {
        self.call("prune", self.store.prune(namespace, limit)).await
    }

    async fn define(&self, define: Define) -> Result<()> {
        self.call("define", self.store.define(define)).await
    }

    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        self.call("changed", self.store.changed(namespace, seen)).await
    }

    async fn job(&self, id: JobId) -> Result<Found> {
        // Tests look at jobs; that is no news.
        self.store.job(id).await
    }

    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>> {
        self.call("key_holder", self.store.key_holder(namespace, key)).await
    }

    async fn jobs(&self, filter: JobFilter) -> Result<Page> {
        self.call("jobs", self.store.jobs(filter)).await
    }

    async fn history(&self, id: JobId) -> Result<Vec<Entry>> {
        self.call("history", self.store.history(id)).await
    }

    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>> {
        self.call("steps", self.store.steps(id)).await
    }

    async fn explain(&self, id: JobId) -> Result<Explanation> {
        self.call("explain", self.store.explain(id)).await
    }

    async fn lanes(&self, filter: LaneFilter) -> Result<Vec<LaneView>> {
        self.call("lanes", self.store.lanes(filter)).await
    }

    async fn queues(&self, filter: QueueFilter) -> Result<Overview> {
        self.call("queues", self.store.queues(filter)).await
    }

    async fn export(&self, namespace: Option<Namespace>) -> Result<Parcel> {
        self.call("export", self.store.export(namespace)).await
    }

    async fn import(&self, parcel: Parcel) -> Result<()> {
        self.call("import", self.store.import(parcel)).await
    }

    async fn mark(&self, mark: Mark) -> Result<()> {
        self.call("mark", self.store.mark(mark)).await
    }

    async fn backup(&self, path: PathBuf) -> Result<()> {
        self.call("backup", self.store.backup(path)).await
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.call("examine", self.store.examine()).await
    }

    fn is_parallel(&self) -> bool {
        self.store.is_parallel()
    }
}
