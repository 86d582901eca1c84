//! A process under a claim, from its start until it and its group are gone.

use std::time::Duration;

use acta_core::Span;
use anyhow::Result;
use tokio::time::Instant;

use super::{Ending, Line, LogFile, Next, Process};
use crate::printer::Printer;

/// How long a process group has between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long the system has to clear away a group that was killed.
const CLEARING: Duration = Duration::from_secs(1);
/// How long it takes at the most until a group that is to stop is gone, and everything that it wrote is kept.
pub(crate) const STOPPING: Duration = Duration::from_secs(8);

/// Why a process was ended.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It took longer than its timeout.
    TimedOut(Span),
    /// A signal to the robot.
    Interrupted,
    /// The robot is shutting down and waits no longer.
    ShutDown,
    /// A cancel from elsewhere.
    CancelRequested,
    /// The claim is somebody else's.
    Lost,
}

/// What the robot is told while the process runs.
#[derive(Debug)]
pub(crate) enum Order {
    /// End it: TERM, and KILL after the grace.
    Stop(Stop),
    /// Kill it now.
    Kill(Stop),
}

/// Where orders come from. Nothing is lost where a wait for the next one is given up.
pub(crate) trait Orders {
    /// Waits for the next order.
    fn next(&mut self) -> impl Future<Output = Order> + Send;
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Watched {
    /// By itself, or after its timeout.
    pub(super) ending: Ending,
    /// Why it was ended, if it was.
    pub(super) stop: Option<Stop>,
    /// The last line that it wrote to its standard error.
    pub(super) last_words: Option<String>,
}

/// What watches.
pub(super) struct Watch<'a, O> {
    /// Where its output is shown as it comes.
    pub(super) show: Option<&'a Printer>,
    pub(super) log: &'a mut LogFile,
    pub(super) orders: &'a mut O,
    pub(super) timeout: Option<Span>,
}

impl<O: Orders> Watch<'_, O> {
    /// Reads what the process writes until it has ended; ends its whole group when there is a reason to, with some grace
    /// in which it is still read and its claim is still kept.
    pub(super) async fn until_the_end(mut self, mut process: Process) -> Result<Watched> {
        let limit = self.timeout.map(|limit| (Instant::now() + limit.to_std(), limit));
        let mut stop: Option<Stop> = None;
        let mut kill_at: Option<Instant> = None;
        let mut last_words = None;
        let status = loop {
            let order = tokio::select! {
                // Output comes last: one that never stops writing is stopped all the same.
                biased;
                order = self.orders.next() => order,
                limit = expiry(limit), if stop.is_none() => Order::Stop(Stop::TimedOut(limit)),
                () = at(kill_at) => {
                    kill_at = None;
                    process.kill();
                    continue;
                }
                next = process.next() => match next? {
                    Next::Wrote(line) => {
                        self.keep(&line, &mut last_words);
                        continue;
                    }
                    Next::Ended(status) => break status,
                },
            };
            // A job that has ended was not stopped.
            if stop.is_none()
                && let Some(status) = process.has_ended()?
            {
                break status;
            }
            let reason = match order {
                Order::Stop(Stop::Interrupted) if stop.is_some() => {
                    process.kill();
                    continue;
                }
                Order::Kill(reason) => {
                    process.kill();
                    reason
                }
                Order::Stop(reason) => reason,
            };
            if stop.is_none() {
                process.terminate();
                kill_at = Some(Instant::now() + GRACE);
            }
            // The first reason is the reason, unless the job turns out to be somebody else's.
            stop = match stop.take() {
                Some(first) if !matches!(reason, Stop::Lost) => Some(first),
                Some(_) | None => Some(reason),
            };
        };
        if stop.is_some() {
            // Its leader is gone; the others of the group still have their grace, and are still heard.
            let end = kill_at.unwrap_or_else(Instant::now);
            while let Some(line) = process.line_of_group(end).await {
                self.keep(&line, &mut last_words);
            }
            process.kill();
            process.group_is_gone(CLEARING).await;
        }
        for line in process.last_lines().await {
            self.keep(&line, &mut last_words);
        }
        let ending = match &stop {
            Some(Stop::TimedOut(limit)) => Ending::TimedOut(limit.to_string()),
            _ => Ending::Exited(status),
        };
        Ok(Watched { ending, stop, last_words })
    }

    fn keep(&mut self, line: &Line, last_words: &mut Option<String>) {
        self.log.line(&line.text);
        if let Some(printer) = self.show {
            printer.live(&line.text);
        }
        if line.is_error && !line.text.trim().is_empty() {
            *last_words = Some(line.text.clone());
        }
    }
}

/// Waits for an instant; for ever where there is none.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Waits for a timeout; which one it was.
async fn expiry(limit: Option<(Instant, Span)>) -> Span {
    match limit {
        Some((end, limit)) => {
            tokio::time::sleep_until(end).await;
            limit
        }
        None => std::future::pending().await,
    }
}
