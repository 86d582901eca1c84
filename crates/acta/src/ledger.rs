//! A ledger as an application sees it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use acta_core::store::{Action, Define, Enqueue, Enqueued, Found, NewJob, Operated, Operation};
use acta_core::{
    Clock, Definition, Error, JobId, Json, Label, Name, Namespace, Result, Store, SystemClock, Traceparent,
};
use serde::Serialize;
use tokio::sync::OnceCell;

use crate::carry::Carrier;
use crate::context::Desk;
use crate::job::{Job, definition_of, namespace_of};
use crate::prepare::{Prepared, new_jobs};
use crate::traced::Traces;

/// A ledger. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    carrier: Arc<Carrier>,
    traces: Traces,
    /// Definitions that this process has registered, or is about to.
    defined: Mutex<HashMap<&'static str, Arc<OnceCell<()>>>>,
    /// The ledger itself, for what only some substrates can do; none, where the application has brought a store of its own.
    #[cfg(any(feature = "sqlite", feature = "file", feature = "postgres"))]
    #[allow(dead_code, reason = "asked for by the drivers of callers' transactions, none of which may be wanted")]
    opened: Option<acta_store::Opened>,
}

impl Inner {
    fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            carrier: Arc::default(),
            traces: Traces::default(),
            defined: Mutex::default(),
            #[cfg(any(feature = "sqlite", feature = "file", feature = "postgres"))]
            opened: None,
        }
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens a ledger by its address: `sqlite:<file>`, `file:<folder>` or `postgres://…`. One that is not there is made.
    ///
    /// Its calls are counted, timed and traced ([`crate::Observed`]).
    #[cfg(any(feature = "sqlite", feature = "file", feature = "postgres"))]
    pub async fn open(url: &str) -> Result<Self> {
        let address: acta_store::Address = url.parse()?;
        let opened = address.opened(Arc::new(SystemClock)).await?;
        let store: Arc<dyn Store> = Arc::new(crate::Observed::over(opened.store()));
        let inner = Inner { opened: Some(opened), ..Inner::new(store, Arc::new(SystemClock)) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The ledger of any store, by the machine's clock.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self::by_clock(store, Arc::new(SystemClock))
    }

    /// The ledger of any store that goes by this clock.
    pub fn by_clock(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner::new(store, clock)) }
    }

    /// Asks `source` for the trace of whoever enqueues: the value of a header `traceparent`, as OpenTelemetry's propagator writes it.
    /// One that is malformed counts as none. To be said once, where the ledger is opened.
    ///
    /// The trace is kept with the job ([`Context::traceparent`](crate::Context::traceparent)); what its handler enqueues belongs to
    /// it, too, unless the source says otherwise.
    pub fn traced_by(self, source: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.inner.traces.ask(move || source().and_then(|header| Traceparent::new(&header).ok()));
        self
    }

    /// The trace that a job belongs to which is enqueued here and now.
    pub(crate) fn traceparent(&self) -> Option<Traceparent> {
        self.inner.traces.current()
    }

    /// The store itself, with all its verbs.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// What tells the time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Enqueues a job. It is durable when this answers. Concurrent calls of one process share round trips.
    ///
    /// A second job of the same deduplication key is not added; the answer is the first one's.
    pub async fn enqueue<J: Job>(&self, job: &J) -> Result<Enqueued> {
        self.prepare(job).enqueue().await
    }

    /// Enqueues jobs, all or none; one answer each, in order.
    pub async fn enqueue_many<'j, J: Job>(&self, jobs: impl IntoIterator<Item = &'j J>) -> Result<Vec<Enqueued>> {
        let jobs = new_jobs(self.traceparent().as_ref(), jobs)?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.define::<J>().await?;
        self.inner.store.enqueue(Enqueue { namespace: namespace_of::<J>()?, jobs }).await
    }

    /// A job to be enqueued, about which more can be said before.
    pub fn prepare<J: Job>(&self, job: &J) -> Prepared<'_, J> {
        Prepared::new(self, job)
    }

    /// Registers what the type's constants say; once per process and type. Enqueues and workers do it by themselves.
    pub async fn define<J: Job>(&self) -> Result<()> {
        let cell = self.defined_cell(J::NAME);
        cell.get_or_try_init(|| async { self.register(definition_of::<J>()?).await }).await.copied()
    }

    fn defined_cell(&self, name: &'static str) -> Arc<OnceCell<()>> {
        let mut defined = self.inner.defined.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(defined.entry(name).or_default())
    }

    /// Whether this process has registered what the type's constants say.
    #[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
    pub(crate) fn is_defined<J: Job>(&self) -> bool {
        self.defined_cell(J::NAME).initialized()
    }

    /// The ledger itself, for what only some substrates can do.
    #[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
    pub(crate) fn opened(&self) -> Result<&acta_store::Opened> {
        self.inner.opened.as_ref().ok_or_else(|| {
            let why = "is a store of the application's own, whose database nobody knows here; open it by its address";
            Error::invalid("ledger", "", why)
        })
    }

    pub(crate) async fn register(&self, definition: Definition) -> Result<()> {
        self.inner.store.define(Define::Job(definition)).await
    }

    pub(crate) async fn send(&self, namespace: Namespace, job: NewJob) -> Result<Enqueued> {
        self.inner.carrier.send(&self.inner.store, namespace, job).await
    }

    pub(crate) fn desk(&self, namespace: Namespace) -> Desk {
        Desk { store: Arc::clone(&self.inner.store), clock: Arc::clone(&self.inner.clock), namespace }
    }

    /// A job and where it stands.
    pub async fn job(&self, id: &JobId) -> Result<Found> {
        self.inner.store.job(id.clone()).await
    }

    /// Tells a job something; kept until it waits for it.
    pub async fn signal(&self, id: &JobId, name: &str, payload: &impl Serialize) -> Result<Operated> {
        let name = Name::new("signal", name)?;
        let text = serde_json::to_string(payload).map_err(|fault| unwritable("payload", &fault))?;
        self.operate(id, Action::Signal { name, payload: Json::new(text)? }).await
    }

    /// Ends a job: at once where nobody works on it; else its handler is told ([`crate::Context::cancelled`]).
    pub async fn cancel(&self, id: &JobId) -> Result<Operated> {
        self.operate(id, Action::Cancel { force: false }).await
    }

    async fn operate(&self, id: &JobId, action: Action) -> Result<Operated> {
        let namespace = self.job(id).await?.namespace;
        let actor = Some(Label::new("actor", "application")?);
        let operation = Operation { namespace, ids: vec![id.clone()], action, actor, reason: None };
        let mut answers = self.inner.store.operate(operation).await?;
        answers.pop().unwrap_or_else(|| Err(Error::not_found("job", id.as_str())))
    }
}

/// A value of the application's that is no JSON.
pub(crate) fn unwritable(what: &'static str, fault: &serde_json::Error) -> Error {
    Error::invalid(what, "", format!("can't be written as JSON: {fault}"))
}
