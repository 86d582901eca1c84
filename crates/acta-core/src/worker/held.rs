//! The jobs whose handlers run.

use super::{Action, Note, Ticket, Word, Worker};
use crate::error::Error;
use crate::job::{FailureKind, Job};
use crate::store::Outcome;

/// A job whose handler runs.
#[derive(Debug)]
pub(super) struct Held {
    /// How long its lease is.
    pub(super) lease_ms: u64,
    /// From when on the lease counts at the least: when the call that gave or extended it was begun.
    pub(super) since_ms: u64,
    /// The handler knows that somebody wants the job to end.
    is_cancelled: bool,
    /// The job is somebody else's.
    pub(super) is_lost: bool,
    /// The handler was told to stop.
    is_stopped: bool,
}

impl Held {
    pub(super) fn of(job: &Job, since_ms: u64) -> Self {
        let standing = &job.standing;
        // Both instants are of the store's clock; ours may show another time.
        let lease_ms = match (standing.claimed_at, standing.lease_expires_at) {
            (Some(from), Some(until)) => u64::try_from(until.since_ms(from)).unwrap_or_default(),
            _ => 0,
        };
        Self { lease_ms, since_ms, is_cancelled: false, is_lost: false, is_stopped: false }
    }

    pub(super) fn lapses_at_ms(&self) -> u64 {
        self.since_ms.saturating_add(self.lease_ms)
    }
}

impl Worker {
    /// Runs a job that was claimed by a call begun at `since_ms`.
    pub(super) fn start(&mut self, job: Job, since_ms: u64) {
        self.held.insert(Ticket::of(&job), Held::of(&job, since_ms));
        self.actions.push(Action::Start(Box::new(job)));
    }

    /// Tells a handler, once, that somebody wants its job to end.
    pub(super) fn cancel(&mut self, ticket: &Ticket) {
        if let Some(held) = self.held.get_mut(ticket)
            && !std::mem::replace(&mut held.is_cancelled, true)
        {
            self.actions.push(Action::Tell(ticket.clone(), Word::Cancel));
        }
    }

    /// Tells a handler that its job is somebody else's; what it returns is dropped.
    pub(super) fn lose(&mut self, ticket: &Ticket, fault: Error) {
        if let Some(held) = self.held.get_mut(ticket)
            && !std::mem::replace(&mut held.is_lost, true)
        {
            self.actions.push(Action::Tell(ticket.clone(), Word::Lost));
            self.note(Note::Lost(ticket.clone(), fault));
        }
    }

    /// Tells all handlers that the worker waits no longer.
    pub(super) fn stop_handlers(&mut self) {
        for (ticket, held) in &mut self.held {
            if !std::mem::replace(&mut held.is_stopped, true) {
                self.actions.push(Action::Tell(ticket.clone(), Word::Stop));
            }
        }
    }

    /// A handler has returned: its slot is free, its outcome waits for the next exchange.
    pub(super) fn take_returned(&mut self, ticket: &Ticket, outcome: Outcome) {
        let Some(held) = self.held.remove(ticket) else { return };
        if held.is_lost {
            return;
        }
        // One that was told to stop and returned with nothing done gives its job back, at no cost to the job.
        let has_given_up = match &outcome {
            Outcome::Failed(failure) => failure.kind == FailureKind::System,
            Outcome::Cancelled => !held.is_cancelled,
            Outcome::Succeeded(_) | Outcome::Wait { .. } | Outcome::Snooze(_) | Outcome::Release => false,
        };
        let outcome = if held.is_stopped && has_given_up { Outcome::Release } else { outcome };
        self.owe(ticket.clone(), outcome, held.lapses_at_ms());
    }
}
