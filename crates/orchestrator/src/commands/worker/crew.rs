//! What the handlers of a worker share: each runs one process at a time for one job.

use std::path::PathBuf;
use std::time::Duration;

use acta::{Context, StopReason, Ticket};
use acta_core::store::Outcome;
use acta_core::{Label, Namespace};
use anyhow::Result;
use tokio::sync::{mpsc, watch};

use super::news::News;
use crate::jobdef::Jobdef;
use crate::robot::{Bench, Order, Orders, Stop, Work, Worked};

/// How long a job waits that could not be begun on this machine: long enough that it does not come back at once, again
/// and again.
const PUT_OFF: Duration = Duration::from_secs(10);

/// Where jobs come from and where their logs and news go.
pub(super) struct Crew {
    pub(super) namespace: Namespace,
    pub(super) robot: Label,
    pub(super) logs: PathBuf,
    /// True once everything is to be killed.
    pub(super) is_over: watch::Receiver<bool>,
    pub(super) news: mpsc::UnboundedSender<News>,
}

impl Crew {
    /// Works on one claimed job; what became of it.
    pub(super) async fn work(&self, jobdef: &Jobdef, context: Context) -> Outcome {
        let job = context.job();
        let ticket = Ticket::of(job);
        let (attempt, of) = (job.standing.attempts, job.standing.max_attempts);
        self.say(News::Began { ticket: ticket.clone(), name: jobdef.name.clone(), attempt, of });
        let outcome = self.attempt(jobdef, &context).await.unwrap_or_else(|fault| {
            // The machine's fault, not the job's: no attempt is spent, and another machine may do better.
            let until = context.after(PUT_OFF);
            self.say(News::Warning(format!("{}: {fault:#}; it is put off until {until}", ticket.id)));
            Outcome::Snooze(until)
        });
        self.say(News::Returned(ticket));
        outcome
    }

    async fn attempt(&self, jobdef: &Jobdef, context: &Context) -> Result<Outcome> {
        let bench = Bench::set_up(&self.logs, context.id())?;
        let mut orders = CrewOrders { context, known: None, is_over: self.is_over.clone(), is_killed: false };
        tokio::select! {
            biased;
            order = orders.next() => return Ok(instead_of(&order)),
            told = context.started() => match told {
                // What it settles is refused, too, and told.
                Err(fault) if !fault.is_unavailable() => return Ok(Outcome::Release),
                told => told?,
            },
        }
        let work = Work { jobdef, namespace: &self.namespace, robot: &self.robot, job: context.job() };
        Ok(match work.run(bench, &mut orders, None).await? {
            Worked::Ended(outcome) => outcome,
            Worked::Stopped(stop) => after(&stop),
        })
    }

    fn say(&self, news: News) {
        // Nobody listens any more once the worker has ended.
        let _ = self.news.send(news);
    }
}

/// What becomes of a job whose process was not started because of an order.
fn instead_of(order: &Order) -> Outcome {
    match order {
        Order::Stop(stop) | Order::Kill(stop) => after(stop),
    }
}

/// What becomes of a job whose process was stopped, however that ended: it was not its own end.
fn after(stop: &Stop) -> Outcome {
    match stop {
        Stop::CancelRequested => Outcome::Cancelled,
        // Of a lost claim nothing is settled; a process that took too long has an outcome of its own.
        Stop::ShutDown | Stop::Interrupted | Stop::Lost | Stop::TimedOut(_) => Outcome::Release,
    }
}

/// What the worker tells a handler, and the end of all patience.
struct CrewOrders<'a> {
    context: &'a Context,
    /// What was told already.
    known: Option<StopReason>,
    is_over: watch::Receiver<bool>,
    is_killed: bool,
}

impl Orders for CrewOrders<'_> {
    async fn next(&mut self) -> Order {
        let is_over = async {
            if self.is_killed || self.is_over.wait_for(|is_over| *is_over).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = is_over => {
                self.is_killed = true;
                Order::Kill(Stop::ShutDown)
            }
            reason = self.context.cancelled_otherwise(self.known) => {
                self.known = Some(reason);
                match reason {
                    StopReason::Cancel => Order::Stop(Stop::CancelRequested),
                    // Somebody else may be running the job already.
                    StopReason::Lost => Order::Kill(Stop::Lost),
                    StopReason::Stop => Order::Stop(Stop::ShutDown),
                }
            }
        }
    }
}
