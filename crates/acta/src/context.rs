//! What a handler knows of its job, and can do about it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acta_core::job::FailureKind;
use acta_core::store::{Claimant, Failure, News, Outcome, Report};
use acta_core::worker::{Ticket, Word};
use acta_core::{Clock, Error, JobId, Json, Name, Namespace, Result, Span, Store, Timestamp, Traceparent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, watch};
use tokio::time::{Instant, sleep};

use crate::error::JobError;

/// What a handler knows of its job, and can do about it. Cheap to clone.
///
/// A handler whose job waits ([`Context::sleep`], [`Context::wait_signal`]) ends and later runs again *from its
/// beginning*, perhaps in another process. What it did before is not forgotten if it did it in a [`Context::step`];
/// sleeps and waits are told apart by their order, so a handler must come to them in the same order each time.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    desk: Desk,
    job: acta_core::Job,
    word: watch::Receiver<Option<Word>>,
    /// What earlier runs have kept, once somebody asked for it.
    kept: OnceCell<Mutex<BTreeMap<String, Json>>>,
    sleeps: AtomicUsize,
    waits: AtomicUsize,
}

/// Where the job is, and what tells the time there.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) namespace: Namespace,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Desk").field(&self.namespace).finish()
    }
}

/// What a wait came to, as the ledger keeps it.
#[derive(Deserialize)]
struct WaitEnd<T> {
    signal: String,
    #[serde(default = "Option::default")]
    payload: Option<T>,
}

/// The prefix of the steps in which sleeps are kept.
const SLEEP: &str = "sleep:";
/// How long the first pause before a report is repeated is, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

impl Context {
    pub(crate) fn new(desk: Desk, job: acta_core::Job, word: watch::Receiver<Option<Word>>) -> Self {
        let (sleeps, waits) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { inner: Arc::new(Inner { desk, job, word, kept: OnceCell::new(), sleeps, waits }) }
    }

    /// The job's id.
    pub fn id(&self) -> &JobId {
        &self.inner.job.identity.id
    }

    /// Which attempt this is, from 1. Durable waits do not count.
    pub fn attempt(&self) -> u32 {
        self.inner.job.standing.attempts
    }

    /// The number of this claim; it only grows, with every claim of the job. Give it to what the handler changes
    /// elsewhere, so that a late one can be told from the present one.
    pub fn fence(&self) -> u64 {
        self.inner.job.standing.fence
    }

    /// The job as it was claimed.
    pub fn job(&self) -> &acta_core::Job {
        &self.inner.job
    }

    /// The trace that the job belongs to, if whoever enqueued it was in one: what a header `traceparent` would hold.
    pub fn traceparent(&self) -> Option<&Traceparent> {
        self.inner.job.identity.traceparent.as_ref()
    }

    /// The instant now, by the clock of the ledger.
    pub fn now(&self) -> Timestamp {
        // The claim was stamped by the store; a clock of ours that is behind must not take time back.
        let now = self.inner.desk.clock.now();
        self.inner.job.standing.claimed_at.map_or(now, |claimed_at| now.max(claimed_at))
    }

    /// Why the handler should stop, if it should: a cancel was requested, the lease was lost, or the worker waits no
    /// longer.
    pub fn stop_reason(&self) -> Option<Word> {
        *self.inner.word.borrow()
    }

    /// Whether the handler should stop.
    pub fn is_cancelled(&self) -> bool {
        self.stop_reason().is_some()
    }

    /// Resolves once the handler should stop, to the reason.
    pub async fn cancelled(&self) -> Word {
        self.cancelled_otherwise(None).await
    }

    /// Resolves once the handler should stop for another reason than the one that is `known`: a job whose cancel was
    /// requested may be lost as well before its handler has returned.
    pub async fn cancelled_otherwise(&self, known: Option<Word>) -> Word {
        let mut word = self.inner.word.clone();
        let is_news = |word: &Option<Word>| word.is_some() && *word != known;
        match word.wait_for(is_news).await.map(|word| *word) {
            Ok(Some(word)) => word,
            // Nobody is there any more who could tell.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Tells that work has begun: the job is `running` from now on, `processing` in a transaction queue. It is a write,
    /// and nothing depends on it.
    pub async fn started(&self) -> Result<()> {
        self.report(News::Started).await
    }

    /// Tells how far the job is: a line for people, at most 4 KiB.
    pub async fn progress(&self, text: impl Into<String>) -> Result<(), JobError> {
        Ok(self.report(News::Progress(text.into())).await?)
    }

    /// Sleeps for so long, durably: the slot is given back and the handler runs again when the time has passed.
    pub async fn sleep(&self, duration: Duration) -> Result<(), JobError> {
        self.sleep_until(self.after(duration)).await
    }

    /// Sleeps until the instant, durably: the slot is given back and the handler runs again when it has come.
    ///
    /// The instant of the first run counts; later runs find it kept.
    pub async fn sleep_until(&self, until: Timestamp) -> Result<(), JobError> {
        let number = self.inner.sleeps.fetch_add(1, Ordering::SeqCst) + 1;
        let until: Timestamp = self.keep(&format!("{SLEEP}{number}"), async || Ok(until)).await?;
        if self.now() >= until { Ok(()) } else { Err(JobError::wait(Outcome::Snooze(until))) }
    }

    /// Waits for a signal, durably: the slot is given back and the handler runs again when the signal has come, with
    /// its payload, or when `until` has passed, with `None`.
    ///
    /// A signal that came before its wait is not lost; each is consumed by one wait.
    pub async fn wait_signal<T: DeserializeOwned>(
        &self,
        name: &str,
        until: Option<Timestamp>,
    ) -> Result<Option<T>, JobError> {
        let number = self.inner.waits.fetch_add(1, Ordering::SeqCst) + 1;
        let signal = Name::new("signal", name)?;
        let Some(kept) = self.kept(&format!("wait:{number}")).await? else {
            return Err(JobError::wait(Outcome::Wait { until, signal: Some(signal) }));
        };
        let end: WaitEnd<T> = decode(&format!("the signal {name:?}"), &kept)?;
        if end.signal != name {
            let found = end.signal;
            return Err(JobError::system(format!(
                "wait {number} is for the signal {name:?} now, and was for {found:?} in an earlier run"
            )));
        }
        Ok(end.payload)
    }

    /// Does something once: its result is kept in the ledger, and later runs of the handler get it from there.
    ///
    /// The name is unique in the job, 1 to 200 bytes, and begins with neither `wait:` nor `sleep:`. If the process dies
    /// between the end of `work` and the keeping, `work` is done again.
    pub async fn step<T, W>(&self, name: &str, work: W) -> Result<T, JobError>
    where
        T: Serialize + DeserializeOwned,
        W: AsyncFnOnce() -> Result<T, JobError>,
    {
        if name.starts_with(SLEEP) {
            return Err(Error::invalid("step", name, "begins with \"sleep:\", as the steps of sleeps do").into());
        }
        self.keep(name, work).await
    }

    /// The instant after so long.
    pub fn after(&self, duration: Duration) -> Timestamp {
        self.now().plus_ms(Span::of(duration).as_millis())
    }

    async fn keep<T, W>(&self, name: &str, work: W) -> Result<T, JobError>
    where
        T: Serialize + DeserializeOwned,
        W: AsyncFnOnce() -> Result<T, JobError>,
    {
        if let Some(kept) = self.kept(name).await? {
            return decode(&format!("the step {name:?}"), &kept);
        }
        let result = work().await?;
        let value = Json::new(serde_json::to_string(&result)?)?;
        self.report(News::Step { name: name.to_owned(), value: value.clone() }).await?;
        if let Some(kept) = self.inner.kept.get() {
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value);
        }
        Ok(result)
    }

    /// What an earlier run, or an earlier step of this one, has kept under a name.
    async fn kept(&self, name: &str) -> Result<Option<Json>, JobError> {
        let load = || async {
            // Nobody has run under the first claim yet.
            let steps = if self.fence() == 1 { Vec::new() } else { self.patiently(|| self.steps()).await? };
            Ok::<_, Error>(Mutex::new(steps.into_iter().collect()))
        };
        let kept = self.inner.kept.get_or_try_init(load).await?;
        Ok(kept.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
    }

    fn steps(&self) -> impl Future<Output = Result<Vec<(String, Json)>>> + Send + '_ {
        self.inner.desk.store.steps(self.id().clone())
    }

    async fn report(&self, news: News) -> Result<()> {
        let Desk { store, namespace, .. } = &self.inner.desk;
        let Ticket { id, fence } = Ticket::of(&self.inner.job);
        self.patiently(|| {
            let claimant = Claimant::fence(fence);
            store.report(Report { namespace: namespace.clone(), id: id.clone(), claimant, news: news.clone() })
        })
        .await
    }

    /// Repeats a call while the ledger is out of reach and a lease lasts at the most.
    async fn patiently<T, F: Future<Output = Result<T>>>(&self, call: impl Fn() -> F) -> Result<T> {
        let standing = &self.inner.job.standing;
        let lease = standing.claimed_at.zip(standing.lease_expires_at).map_or(0, |(from, until)| until.since_ms(from));
        let patience = Duration::from_millis(lease.unsigned_abs());
        let (start, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            match call().await {
                Err(fault) if fault.is_unavailable() && start.elapsed() < patience => sleep(pause).await,
                answer => return answer,
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// Reads what was kept; tells the field and the type where it can't be read.
fn decode<T: DeserializeOwned>(what: &str, json: &Json) -> Result<T, JobError> {
    let mut text = serde_json::Deserializer::from_str(json.as_str());
    serde_path_to_error::deserialize(&mut text).map_err(|fault| {
        let message = format!("{what} does not decode: at {}: {}", fault.path(), fault.inner());
        JobError::failed(Failure { code: Some("undecodable".into()), ..Failure::new(FailureKind::System, message) })
    })
}
