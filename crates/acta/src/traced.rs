//! The trace that a job belongs to, from whoever enqueues it to whoever runs it.

use std::future::Future;
use std::sync::OnceLock;

use acta_core::Traceparent;

tokio::task_local! {
    /// The trace of the job whose handler this task runs.
    static OF_JOB: Option<Traceparent>;
}

/// What tells the trace that the caller is in.
type Source = Box<dyn Fn() -> Option<Traceparent> + Send + Sync>;

/// Where the traces of enqueued jobs come from.
#[derive(Default)]
pub(crate) struct Traces(OnceLock<Source>);

impl Traces {
    /// Asks this one from now on; the first that is set stays.
    pub(crate) fn ask(&self, source: impl Fn() -> Option<Traceparent> + Send + Sync + 'static) {
        // A second one would change what others rely on.
        let _ = self.0.set(Box::new(source));
    }

    /// The trace of the caller, else that of the job whose handler calls.
    pub(crate) fn current(&self) -> Option<Traceparent> {
        let of_caller = self.0.get().and_then(|source| source());
        of_caller.or_else(of_job)
    }
}

/// The trace of the job whose handler calls.
pub(crate) fn of_job() -> Option<Traceparent> {
    OF_JOB.try_with(Clone::clone).ok().flatten()
}

/// Runs a job's handler, so that what it enqueues belongs to the same trace.
pub(crate) fn within<F: Future>(traceparent: Option<Traceparent>, handler: F) -> impl Future<Output = F::Output> {
    OF_JOB.scope(traceparent, handler)
}
