//! How a handler says that a job was not done.

use std::fmt;
use std::time::Duration;

use acta_core::job::FailureKind;
use acta_core::store::{Failure, Outcome};
use acta_core::{Json, Span};
use serde::Serialize;

/// Why a handler did not finish its job.
///
/// `?` on any error makes a system failure of it, which is tried again while attempts remain; its message is the error
/// with all its sources. Like other catch-all errors it is itself no [`std::error::Error`].
///
/// A durable wait ([`crate::Context::sleep`] and its kin) ends the run of a handler by such a value, too: hand it on
/// with `?`, or the job will not wait.
pub struct JobError(Box<Outcome>);

impl JobError {
    /// The domain says no: an expected refusal, with a code for programs. It is final, but in a job queue (`queues/…`).
    pub fn business(code: impl Into<String>, message: impl Into<String>) -> Self {
        let failure = Failure { code: Some(code.into()), ..Failure::new(FailureKind::Business, message) };
        Self::failed(failure)
    }

    /// Infrastructure or program failed; tried again while attempts remain.
    pub fn system(message: impl fmt::Display) -> Self {
        Self::failed(Failure::new(FailureKind::System, message.to_string()))
    }

    /// A system failure that is not tried again before `after` has passed, whatever the back-off says.
    pub fn retry_after(after: Duration, message: impl fmt::Display) -> Self {
        let failure = Failure::new(FailureKind::System, message.to_string());
        Self::failed(Failure { retry_after: Some(Span::of(after)), ..failure })
    }

    /// The same with a code for programs.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        if let Outcome::Failed(failure) = self.0.as_mut() {
            failure.code = Some(code.into());
        }
        self
    }

    /// The same with more, as JSON. What can't be written as JSON is left out.
    pub fn with_details(mut self, details: &impl Serialize) -> Self {
        if let Outcome::Failed(failure) = self.0.as_mut() {
            failure.details = serde_json::to_string(details).ok().and_then(|text| Json::new(text).ok());
        }
        self
    }

    /// Whether this is no failure, but a durable wait on its way to the worker.
    pub fn is_wait(&self) -> bool {
        matches!(*self.0, Outcome::Wait { .. } | Outcome::Snooze(_))
    }

    pub(crate) fn failed(failure: Failure) -> Self {
        Self(Box::new(Outcome::Failed(failure)))
    }

    /// The handler's run ends here and the job waits.
    pub(crate) fn wait(outcome: Outcome) -> Self {
        Self(Box::new(outcome))
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        *self.0
    }
}

impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::system(with_sources(&error))
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobError").field(&self.0).finish()
    }
}

/// An error and what caused it, in a line. A source that the error tells itself is not told twice.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let told = error.to_string();
        if !text.ends_with(&told) {
            text = format!("{text}: {told}");
        }
        source = error.source();
    }
    text
}
