//! What a worker tells whoever watches it: a line per job that it started, and one per end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use acta::{Note, Ticket};
use acta_core::store::{Outcome, SettleAnswer};
use acta_core::{Clock, JobId, Name, State, Timestamp};
use anyhow::Result;
use serde::Serialize;

use crate::printer::Printer;

/// How many characters of a message are told; the whole one is in the ledger.
const MOST_MESSAGE: usize = 200;

/// What has happened.
#[derive(Debug)]
pub(super) enum News {
    /// Work on a job has begun.
    Began { ticket: Ticket, name: Name, attempt: u32, of: u32 },
    /// Its process is gone.
    Returned(Ticket),
    /// What the worker noted.
    Note(Note),
    /// Something to know.
    Warning(String),
}

/// A line for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    at: Timestamp,
    event: &'static str,
    id: &'a JobId,
    name: &'a Name,
    fence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// A job that was begun and whose end is not told yet.
struct Running {
    name: Name,
    since: Instant,
    /// Why its claim is over, if it is.
    lost: Option<String>,
}

/// Tells the news.
pub(super) struct Teller<'a> {
    printer: &'a Printer,
    clock: Arc<dyn Clock>,
    running: HashMap<Ticket, Running>,
    began: u64,
}

impl<'a> Teller<'a> {
    pub(super) fn new(printer: &'a Printer, clock: Arc<dyn Clock>) -> Self {
        Self { printer, clock, running: HashMap::new(), began: 0 }
    }

    /// How many jobs were begun so far.
    pub(super) fn began(&self) -> u64 {
        self.began
    }

    /// How many have not ended yet.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn tell(&mut self, news: News) -> Result<()> {
        match news {
            News::Began { ticket, name, attempt, of } => self.begin(ticket, name, attempt, of),
            News::Returned(ticket) => match self.running.get_mut(&ticket).and_then(|running| running.lost.take()) {
                Some(why) => self.end(&ticket, "lost", None, Some(&why)),
                None => Ok(()),
            },
            News::Note(note) => self.note(note),
            News::Warning(text) => {
                self.printer.news(&format!("warning: {text}"));
                Ok(())
            }
        }
    }

    /// Nothing more will be told: what has not ended is left to its lease.
    pub(super) fn close(mut self) -> Result<()> {
        let left: Vec<Ticket> = self.running.keys().cloned().collect();
        for ticket in left {
            self.end(&ticket, "abandoned", None, None)?;
        }
        Ok(())
    }

    fn begin(&mut self, ticket: Ticket, name: Name, attempt: u32, of: u32) -> Result<()> {
        self.began += 1;
        let at = self.clock.now();
        if self.printer.is_json() {
            let line = Line { attempt: Some(attempt), max_attempts: Some(of), ..line(at, "started", &ticket, &name) };
            self.printer.json_news(&line)?;
        } else {
            let id = &ticket.id;
            self.printer.news(&format!("{at} started {id} {name} (attempt {attempt} of {of})"));
        }
        self.running.insert(ticket, Running { name, since: Instant::now(), lost: None });
        Ok(())
    }

    fn note(&mut self, note: Note) -> Result<()> {
        match note {
            Note::Settled(ticket, outcome, answer) => {
                let message = match &outcome {
                    Outcome::Failed(failure) => Some(failure.message.as_str()),
                    _ => None,
                };
                self.end(&ticket, word(&outcome, answer), answer.run_at, message)
            }
            // Its process is still to be ended; what that does until then is told as the job's end.
            Note::Lost(ticket, fault) => {
                if let Some(running) = self.running.get_mut(&ticket) {
                    running.lost = Some(fault.to_string());
                }
                Ok(())
            }
            Note::Dropped(ticket, _, fault) => {
                let is_lost = fault.is_lease_lost() || fault.is_not_found();
                self.end(&ticket, if is_lost { "lost" } else { "dropped" }, None, Some(&fault.to_string()))
            }
            Note::Abandoned(ticket) => self.end(&ticket, "abandoned", None, None),
            Note::Failing(fault, again_in_ms) => {
                let seconds = super::super::show::seconds(i64::try_from(again_in_ms).unwrap_or(i64::MAX));
                self.printer.news(&format!("warning: {fault}; trying again in {seconds}"));
                Ok(())
            }
            Note::Recovered => {
                self.printer.news("the ledger answers again");
                Ok(())
            }
        }
    }

    fn end(
        &mut self,
        ticket: &Ticket,
        outcome: &'static str,
        run_at: Option<Timestamp>,
        message: Option<&str>,
    ) -> Result<()> {
        // What was given back unworked has not been told as begun either.
        let Some(Running { name, since, .. }) = self.running.remove(ticket) else { return Ok(()) };
        let took_ms = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        let at = self.clock.now();
        let message: Option<String> = message.map(|text| text.chars().take(MOST_MESSAGE).collect());
        if self.printer.is_json() {
            let message = message.as_deref();
            let ended = line(at, "ended", ticket, &name);
            let line = Line { outcome: Some(outcome), took_ms: Some(took_ms), run_at, message, ..ended };
            return self.printer.json_news(&line);
        }
        let (id, took) = (&ticket.id, super::super::show::seconds(took_ms));
        let again = run_at.map(|at| format!(", again at {at}")).unwrap_or_default();
        let why = message.map(|message| format!(": {message}")).unwrap_or_default();
        self.printer.news(&format!("{at} {outcome} {id} {name} in {took}{again}{why}"));
        Ok(())
    }
}

fn line<'a>(at: Timestamp, event: &'static str, ticket: &'a Ticket, name: &'a Name) -> Line<'a> {
    Line {
        at,
        event,
        id: &ticket.id,
        name,
        fence: ticket.fence,
        attempt: None,
        max_attempts: None,
        outcome: None,
        took_ms: None,
        run_at: None,
        message: None,
    }
}

/// What became of a job, in a word.
fn word(outcome: &Outcome, answer: SettleAnswer) -> &'static str {
    match (answer.state, outcome) {
        (State::Cancelled, _) => "cancelled",
        (State::Succeeded, _) => "succeeded",
        (State::Failed, _) => "failed",
        (_, Outcome::Failed(_)) => "retried",
        (_, Outcome::Wait { .. } | Outcome::Snooze(_)) => "put-off",
        (_, Outcome::Release | Outcome::Cancelled | Outcome::Succeeded(_)) => "released",
    }
}
