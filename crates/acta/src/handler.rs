//! Handlers: from a claimed job to its outcome.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use acta_core::job::FailureKind;
use acta_core::store::{Failure, Outcome};
use acta_core::worker::Word;
use acta_core::{Definition, Error, Json, Name, Result};
use serde::Serialize;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::context::{Context, Desk};
use crate::error::JobError;
use crate::job::{Job, definition_of};
use crate::traced;

/// A run of a handler.
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

type Run = Arc<dyn Fn(Context) -> Running + Send + Sync>;

/// The handlers of a worker, by the definition's name.
#[derive(Clone, Default)]
pub(crate) struct Handlers(BTreeMap<Name, (Definition, Run)>);

impl Handlers {
    /// Adds a handler; a second one of the same name takes its place.
    pub(crate) fn add<J, T, F>(&mut self, handler: impl Fn(J, Context) -> F + Send + Sync + 'static) -> Result<()>
    where
        J: Job,
        T: Serialize,
        F: Future<Output = Result<T, JobError>> + Send + 'static,
    {
        let definition = definition_of::<J>()?;
        let handler = Arc::new(handler);
        let run = move |context: Context| -> Running {
            let decoded = decode::<J>(&context.job().identity.payload);
            let handler = Arc::clone(&handler);
            match decoded {
                Ok(job) => {
                    let running = handler(job, context);
                    Box::pin(async move { outcome_of(running.await) })
                }
                Err(failure) => Box::pin(std::future::ready(Outcome::Failed(failure))),
            }
        };
        self.0.insert(definition.name.clone(), (definition, Arc::new(run)));
        Ok(())
    }

    /// Adds a handler that reads payloads itself.
    pub(crate) fn add_raw<F>(&mut self, definition: Definition, handler: impl Fn(Context) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let run = move |context: Context| -> Running { Box::pin(handler(context)) };
        self.0.insert(definition.name.clone(), (definition, Arc::new(run)));
    }

    /// The names of the jobs that can be run.
    pub(crate) fn names(&self) -> Vec<Name> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.0.values().map(|(definition, _)| definition)
    }

    /// Begins to run a claimed job, which hears through `word` when it should stop.
    pub(crate) fn run(&self, desk: Desk, job: acta_core::Job, word: watch::Receiver<Option<Word>>) -> Running {
        let handler = job.identity.name.as_ref().and_then(|name| self.0.get(name));
        match handler.map(|(_, run)| Arc::clone(run)) {
            // Called within the task, so that whatever it does before its first await is the task's, too.
            Some(run) => {
                let identity = &job.identity;
                let span = tracing::info_span!(
                    "job",
                    id = %identity.id,
                    name = identity.name.as_ref().map(tracing::field::display),
                    namespace = %desk.namespace,
                    attempt = job.standing.attempts,
                    traceparent = identity.traceparent.as_ref().map(tracing::field::display),
                );
                let trace = identity.traceparent.clone();
                let running = async move { run(Context::new(desk, job, word)).await };
                Box::pin(traced::within(trace, running.instrument(span)))
            }
            // Only jobs of these names are claimed.
            None => Box::pin(std::future::ready(Outcome::Release)),
        }
    }
}

/// A payload that the type can't be read from. The input is at fault, and trying again does not change it, so the failure
/// is the domain's, which is final.
fn decode<J: Job>(payload: &Json) -> Result<J, Failure> {
    let mut text = serde_json::Deserializer::from_str(payload.as_str());
    serde_path_to_error::deserialize(&mut text).map_err(|fault| {
        let (path, why) = (fault.path(), fault.inner());
        let message = format!("the payload is no {}: at {path}: {why}", std::any::type_name::<J>());
        Failure { code: Some("undecodable".into()), ..Failure::new(FailureKind::Business, message) }
    })
}

/// What a handler's result is to the ledger. Nothing (`()`, `None`) is no output.
fn outcome_of<T: Serialize>(result: Result<T, JobError>) -> Outcome {
    let written = match result {
        Ok(output) => serde_json::to_string(&output).map_err(JobError::from),
        Err(error) => Err(error),
    };
    match written {
        Ok(text) if text == "null" => Outcome::Succeeded(None),
        Ok(text) => match Json::new(text) {
            Ok(output) => Outcome::Succeeded(Some(output)),
            Err(fault) => Outcome::Failed(Failure {
                code: Some("output".into()),
                ..Failure::new(FailureKind::System, format!("done, but the output can't be kept: {fault}"))
            }),
        },
        Err(error) => error.into_outcome(),
    }
}

/// The outcome of a handler that did not return.
pub(crate) fn panicked(panic: tokio::task::JoinError) -> Outcome {
    let message = match panic.try_into_panic() {
        Ok(said) => {
            let text = said.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| said.downcast_ref::<String>().cloned());
            format!("the handler panicked: {}", text.unwrap_or_else(|| "it did not say why".into()))
        }
        Err(_) => "the handler was aborted".into(),
    };
    Outcome::Failed(Failure { code: Some("panic".into()), ..Failure::new(FailureKind::System, message) })
}

/// What a call is answered with whose task has died.
pub(crate) fn died(task: &tokio::task::JoinError) -> Error {
    Error::Unavailable { place: "the ledger".into(), why: format!("the call died: {task}") }
}
