//! A worker, as an application sets it up.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acta_core::store::Outcome;
use acta_core::worker::{Note, Settings};
use acta_core::{Definition, Error, Label, Namespace, Result};
use serde::Serialize;

use crate::context::Context;
use crate::drive::{Drive, Listener};
use crate::error::JobError;
use crate::handler::Handlers;
use crate::job::Job;
use crate::ledger::Ledger;

/// Takes jobs of one queue, runs a handler for each and settles them.
///
/// Any number of workers, in any number of processes, may work on one queue.
#[must_use = "nothing is run before `run` is called"]
pub struct Worker {
    ledger: Ledger,
    queue: String,
    handlers: Handlers,
    settings: Settings,
    robot: Option<String>,
    version: Option<String>,
    listener: Option<Listener>,
    /// What was wrong with the set-up, told by `run`.
    fault: Option<Error>,
}

/// Tells the workers of one process apart.
static LAST_WORKER: AtomicU64 = AtomicU64::new(0);

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("queue", &self.queue)
            .field("names", &self.handlers.names())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker of the queue with this path: `<name>`, `queues/<name>` or `transactions/<name>`.
    pub fn new(ledger: &Ledger, queue: &str) -> Self {
        Self {
            ledger: ledger.clone(),
            queue: queue.to_owned(),
            handlers: Handlers::default(),
            settings: Settings::default(),
            robot: None,
            version: None,
            listener: None,
            fault: None,
        }
    }

    /// Runs jobs of a type by this handler. Jobs of types without one are left to other workers.
    ///
    /// What it returns is kept as the job's output. A panic is a failure like any other. The handler runs as a task of
    /// its own: work that keeps a thread busy belongs into `tokio::task::spawn_blocking`.
    pub fn handle<J, T, F>(mut self, handler: impl Fn(J, Context) -> F + Send + Sync + 'static) -> Self
    where
        J: Job,
        T: Serialize,
        F: Future<Output = Result<T, JobError>> + Send + 'static,
    {
        let added = if J::QUEUE == self.queue {
            self.handlers.add(handler)
        } else {
            let why = format!("is not the queue of this worker, {}, so that no job of it would ever come", self.queue);
            Err(Error::invalid("queue", J::QUEUE, why))
        };
        self.fault = self.fault.or(added.err());
        self
    }

    /// Runs jobs of this definition's name by a handler that knows no type: it reads the payload itself
    /// ([`Context::job`]) and says in the ledger's own words what became of the job. Otherwise as [`Worker::handle`].
    pub fn handle_raw<F>(
        mut self,
        definition: Definition,
        handler: impl Fn(Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.handlers.add_raw(definition, handler);
        self
    }

    /// How many handlers run at once, 1 to 10,000; 10 if nothing is said.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.settings.slots = handlers;
        self
    }

    /// How long running jobs may go on after the shutdown began; 25 s if nothing is said. After that their handlers are
    /// told to stop.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace_ms = millis(grace);
        self
    }

    /// How long handlers have to return after they were told to stop; 3 s if nothing is said. Those that do not are
    /// aborted; their leases lapse, and their jobs are handed out again.
    pub fn notice(mut self, notice: Duration) -> Self {
        self.settings.notice_ms = millis(notice);
        self
    }

    /// How long it waits before it looks for work though nobody said that there is some; 1 s if nothing is said.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.settings.poll_ms = millis(poll).max(1);
        self
    }

    /// How long a running job goes without a heartbeat at the most; a third of its lease if nothing is said, and never
    /// longer than that. A heartbeat is how a requested cancel is heard of.
    pub fn heartbeat(mut self, pause: Duration) -> Self {
        self.settings.beat_ms = millis(pause).max(1);
        self
    }

    /// Ends by itself once there is nothing to claim and nothing runs, without waiting for what is put off.
    pub fn until_idle(mut self) -> Self {
        self.settings.until_idle = true;
        self
    }

    /// Hears what is noteworthy: results that were settled or dropped, leases that were lost, calls that fail. It is
    /// called between the worker's decisions, and must not block.
    pub fn on_note(mut self, listener: impl Fn(&Note) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// The name under which it claims; the machine's, the process's number and the worker's, if nothing is said.
    pub fn named(mut self, robot: &str) -> Self {
        self.robot = Some(robot.to_owned());
        self
    }

    /// The version that whoever looks at the queue's workers is shown; this library's, if nothing is said.
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Works until `shutdown` resolves and what was begun has ended.
    ///
    /// No failure of the ledger ends it: calls are repeated, with growing pauses, until they are answered. Only a set-up
    /// that could never work is refused, before anything is claimed.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let (handlers, namespace) = self.set_up()?;
        let robot = match &self.robot {
            Some(robot) => Label::new("robot", robot)?,
            None => default_robot()?,
        };
        let version = Label::new("version", self.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION")))?;
        let drive = Drive::new(&self.ledger, namespace, (robot, version), handlers, self.settings, self.listener)?;
        drive.run(shutdown).await;
        Ok(())
    }

    /// The handlers and where their jobs are, if all was set up as it must be.
    pub(crate) fn set_up(&self) -> Result<(Handlers, Namespace)> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.handlers.names().is_empty() {
            return Err(Error::invalid("worker", &self.queue, "has no handler"));
        }
        Ok((self.handlers.clone(), self.queue.parse()?))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn default_robot() -> Result<Label> {
    let number = LAST_WORKER.fetch_add(1, Ordering::Relaxed) + 1;
    Label::new("robot", &format!("{}-{}-{number}", crate::presence::host(), std::process::id()))
}
