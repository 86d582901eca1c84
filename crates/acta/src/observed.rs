//! Spans and metrics, added once to whatever store there is.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use acta_core::explain::{Explanation, LaneView};
use acta_core::history::Entry;
use acta_core::job::FailureKind;
use acta_core::store::{
    Beat, Claim, ClaimAnswer, ClaimOutcome, Define, Deliver, Delivered, Enqueue, Enqueued, Finding, Found, Heartbeats,
    Hold, JobFilter, LaneFilter, Mark, Operated, Operation, Outcome, Overview, Page, Parcel, QueueFilter, Report,
    SettleAnswer, Wave,
};
use acta_core::{JobId, Json, Label, Namespace, Result, Store};
use async_trait::async_trait;
use tracing::Instrument as _;

/// A store whose calls are counted, timed and traced.
///
/// Every call is a span `acta` at the debug level with its `verb` and `namespace`; a failed one ends in an event with the
/// `fault`. The metrics, whatever recorder the application has set up:
///
/// | metric | kind | labels |
/// | --- | --- | --- |
/// | `acta_calls_total` | counter | `verb` |
/// | `acta_call_errors_total` | counter | `verb` |
/// | `acta_call_seconds` | histogram | `verb` |
/// | `acta_jobs_enqueued_total` | counter | `namespace` |
/// | `acta_jobs_claimed_total` | counter | `namespace` |
/// | `acta_jobs_settled_total` | counter | `namespace`, `outcome` |
///
/// A wait for changes ([`Store::changed`]) is no work, and is not counted.
pub struct Observed {
    store: Arc<dyn Store>,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

impl Observed {
    /// Observes the calls of a store.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

/// One call, observed.
async fn call<T>(
    verb: &'static str,
    namespace: Option<&Namespace>,
    call: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let span = tracing::debug_span!("acta", verb, namespace = namespace.map(tracing::field::display));
    let start = Instant::now();
    let answer = call.instrument(span.clone()).await;
    metrics::counter!("acta_calls_total", "verb" => verb).increment(1);
    metrics::histogram!("acta_call_seconds", "verb" => verb).record(start.elapsed());
    if let Err(fault) = &answer {
        metrics::counter!("acta_call_errors_total", "verb" => verb).increment(1);
        span.in_scope(|| tracing::debug!(%fault, "refused or failed"));
    }
    answer
}

fn count_enqueued(namespace: &Namespace, created: usize) {
    metrics::counter!("acta_jobs_enqueued_total", "namespace" => namespace.to_string()).increment(created as u64);
}

/// What a settle is counted as.
fn word_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded(_) => "succeeded",
        Outcome::Failed(failure) if failure.kind == FailureKind::Business => "business-exception",
        Outcome::Failed(_) => "system-exception",
        Outcome::Wait { .. } => "wait",
        Outcome::Snooze(_) => "snooze",
        Outcome::Release => "release",
        Outcome::Cancelled => "cancelled",
    }
}

fn words_of(wave: &Wave) -> Vec<&'static str> {
    wave.settlements.iter().map(|settlement| word_of(&settlement.outcome)).collect()
}

fn count_settled(namespace: &Namespace, words: &[&'static str], answers: &[Result<SettleAnswer>]) {
    for (word, _) in words.iter().zip(answers).filter(|(_, answer)| answer.is_ok()) {
        let labels = [("namespace", namespace.to_string()), ("outcome", (*word).to_owned())];
        metrics::counter!("acta_jobs_settled_total", &labels).increment(1);
    }
}

fn count_claimed(namespace: &Namespace, answer: &ClaimAnswer) {
    if let ClaimOutcome::Claimed(jobs) = &answer.outcome {
        let counter = metrics::counter!("acta_jobs_claimed_total", "namespace" => namespace.to_string());
        counter.increment(jobs.len() as u64);
    }
}

#[async_trait]
impl Store for Observed {
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>> {
        let namespace = enqueue.namespace.clone();
        let answers = call("enqueue", Some(&namespace), self.store.enqueue(enqueue)).await?;
        let created = answers.iter().filter(|answer| answer.created).count();
        count_enqueued(&namespace, created);
        Ok(answers)
    }

    async fn deliver(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        let namespace = deliver.namespace.clone();
        let answers = call("deliver", Some(&namespace), self.store.deliver(deliver)).await?;
        let created = answers.iter().filter(|answer| matches!(answer, Delivered::Now { created: true, .. })).count();
        count_enqueued(&namespace, created);
        Ok(answers)
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer> {
        let namespace = claim.namespace.clone();
        let answer = call("claim", Some(&namespace), self.store.claim(claim)).await?;
        count_claimed(&namespace, &answer);
        Ok(answer)
    }

    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>> {
        let (namespace, words) = (wave.namespace.clone(), words_of(&wave));
        let answers = call("settle", Some(&namespace), self.store.settle(wave)).await?;
        count_settled(&namespace, &words, &answers);
        Ok(answers)
    }

    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        let (namespace, words) = (wave.namespace.clone(), words_of(&wave));
        let (answers, answer) = call("exchange", Some(&namespace), self.store.exchange(wave, claim)).await?;
        count_settled(&namespace, &words, &answers);
        count_claimed(&namespace, &answer);
        Ok((answers, answer))
    }

    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        let namespace = beats.namespace.clone();
        call("heartbeat", Some(&namespace), self.store.heartbeat(beats)).await
    }

    async fn report(&self, report: Report) -> Result<()> {
        let namespace = report.namespace.clone();
        call("report", Some(&namespace), self.store.report(report)).await
    }

    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        let namespace = operation.namespace.clone();
        call("operate", Some(&namespace), self.store.operate(operation)).await
    }

    async fn hold(&self, hold: Hold) -> Result<()> {
        let namespace = hold.namespace.clone();
        call("hold", Some(&namespace), self.store.hold(hold)).await
    }

    async fn recover(&self, namespace: Namespace) -> Result<usize> {
        call("recover", Some(&namespace.clone()), self.store.recover(namespace)).await
    }

    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)> {
        call("prune", Some(&namespace.clone()), self.store.prune(namespace, limit)).await
    }

    async fn define(&self, define: Define) -> Result<()> {
        call("define", None, self.store.define(define)).await
    }

    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        self.store.changed(namespace, seen).await
    }

    async fn job(&self, id: JobId) -> Result<Found> {
        call("job", None, self.store.job(id)).await
    }

    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>> {
        call("key_holder", Some(&namespace.clone()), self.store.key_holder(namespace, key)).await
    }

    async fn jobs(&self, filter: JobFilter) -> Result<Page> {
        call("jobs", None, self.store.jobs(filter)).await
    }

    async fn history(&self, id: JobId) -> Result<Vec<Entry>> {
        call("history", None, self.store.history(id)).await
    }

    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>> {
        call("steps", None, self.store.steps(id)).await
    }

    async fn explain(&self, id: JobId) -> Result<Explanation> {
        call("explain", None, self.store.explain(id)).await
    }

    async fn lanes(&self, filter: LaneFilter) -> Result<Vec<LaneView>> {
        let namespace = filter.namespace.clone();
        call("lanes", Some(&namespace), self.store.lanes(filter)).await
    }

    async fn queues(&self, filter: QueueFilter) -> Result<Overview> {
        call("queues", None, self.store.queues(filter)).await
    }

    async fn export(&self, namespace: Option<Namespace>) -> Result<Parcel> {
        call("export", namespace.clone().as_ref(), self.store.export(namespace)).await
    }

    async fn import(&self, parcel: Parcel) -> Result<()> {
        call("import", None, self.store.import(parcel)).await
    }

    async fn mark(&self, mark: Mark) -> Result<()> {
        call("mark", None, self.store.mark(mark)).await
    }

    async fn backup(&self, path: PathBuf) -> Result<()> {
        call("backup", None, self.store.backup(path)).await
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        call("examine", None, self.store.examine()).await
    }

    fn is_parallel(&self) -> bool {
        self.store.is_parallel()
    }
}
