//! A process under a claim, from its start until it and its group are gone.

use std::time::Duration;

use acta_core::{Error, Span};
use anyhow::Result;
use tokio::time::Instant;

use super::heartbeat::{Heart, Word};
use super::interrupts::Interrupts;
use crate::printer::Printer;
use crate::robot::{Ending, Line, LogFile, Next, Process};

/// How long a process group has between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// Why a process was ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// It took longer than its timeout.
    TimedOut(Span),
    /// A signal to the robot.
    Interrupted,
    /// A cancel from elsewhere.
    CancelRequested,
    /// The claim is somebody else's.
    Lost(Error),
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
    /// Whether a signal came to the robot, for whatever reason the process was ended.
    pub(super) is_interrupted: bool,
}

/// What watches.
pub(super) struct Watch<'a> {
    pub(super) printer: &'a Printer,
    pub(super) log: &'a mut LogFile,
    pub(super) heart: &'a mut Heart,
    pub(super) interrupts: &'a mut Interrupts,
    pub(super) timeout: Option<Span>,
}

impl Watch<'_> {
    /// Reads what the process writes until it has ended; ends its whole group when there is a reason to, with some grace
    /// in which it is still read and its claim is still kept.
    pub(super) async fn until_the_end(mut self, mut process: Process) -> Result<Watched> {
        let limit = self.timeout.map(|limit| (Instant::now() + limit.to_std(), limit));
        let mut stop: Option<Stop> = None;
        let mut kill_at: Option<Instant> = None;
        let mut last_words = None;
        let mut is_interrupted = false;
        let status = loop {
            let reason = tokio::select! {
                // What the process did comes first: a job that has ended was not stopped.
                biased;
                next = process.next() => match next? {
                    Next::Wrote(line) => {
                        self.keep(&line, &mut last_words);
                        continue;
                    }
                    Next::Ended(status) => break status,
                },
                word = self.heart.word() => match word {
                    Word::NotHeard(fault) => {
                        self.printer.complain(&format!("warning: no heartbeat: {fault}"));
                        continue;
                    }
                    Word::CancelRequested => {
                        self.printer.complain("its cancel was requested; stopping it");
                        Stop::CancelRequested
                    }
                    Word::Lost(fault) => {
                        // Somebody else may be running the job already.
                        process.kill();
                        Stop::Lost(fault)
                    }
                },
                limit = expiry(limit), if stop.is_none() => Stop::TimedOut(limit),
                () = self.interrupts.next() => {
                    is_interrupted = true;
                    if stop.is_some() {
                        process.kill();
                        continue;
                    }
                    self.printer.complain("interrupted; stopping the job (once more to kill it)");
                    Stop::Interrupted
                }
                () = at(kill_at) => {
                    kill_at = None;
                    process.kill();
                    continue;
                }
            };
            if stop.is_none() {
                process.terminate();
                kill_at = Some(Instant::now() + GRACE);
            }
            // The first reason is the reason, unless the job turns out to be somebody else's.
            stop = match stop.take() {
                Some(first) if !matches!(reason, Stop::Lost(_)) => Some(first),
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
        }
        for line in process.last_lines().await {
            self.keep(&line, &mut last_words);
        }
        let ending = match &stop {
            Some(Stop::TimedOut(limit)) => Ending::TimedOut(limit.to_string()),
            _ => Ending::Exited(status),
        };
        Ok(Watched { ending, stop, last_words, is_interrupted })
    }

    fn keep(&mut self, line: &Line, last_words: &mut Option<String>) {
        self.log.line(&line.text);
        self.printer.live(&line.text);
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
