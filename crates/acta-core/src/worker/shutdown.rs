//! Ending: claim no more, let jobs finish, then tell them to stop, then go.

use super::{Action, Note, Worker};
use crate::error::Error;

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is none.
    Working,
    /// Running jobs may finish; at the given instant their handlers are told to stop.
    Finishing(u64),
    /// Handlers were told to stop; from the given instant on nobody waits for them.
    Stopping(u64),
    /// Over.
    Ended,
}

impl Worker {
    pub(super) fn take_shutdown(&mut self, now_ms: u64) {
        if self.phase == Phase::Working {
            self.phase = Phase::Finishing(now_ms.saturating_add(self.settings.grace_ms));
        }
    }

    /// Takes the shutdown as far as it can be at `now_ms`.
    pub(super) fn shut_down(&mut self, now_ms: u64) {
        if let Phase::Finishing(until_ms) = self.phase
            && now_ms >= until_ms
        {
            self.stop_handlers();
            self.phase = Phase::Stopping(until_ms.saturating_add(self.settings.notice_ms));
        }
        let is_late = match self.phase {
            Phase::Working | Phase::Ended => return,
            Phase::Finishing(_) => false,
            Phase::Stopping(until_ms) => now_ms >= until_ms,
        };
        let is_settled = self.pending.is_empty() && self.flights.is_empty();
        if self.held.is_empty() && is_settled {
            return self.end();
        }
        // An exchange that was begun is always waited for: what it answers decides what is dropped.
        let waits_in_vain = self.flights.is_empty() && self.outage.is_failing();
        if is_late && (is_settled || waits_in_vain) {
            self.give_up();
        }
    }

    /// What is not finished by now is left: the leases lapse, and the jobs are handed out again.
    fn give_up(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let why = "the worker ended while the ledger was out of reach".into();
            let fault = Error::Unavailable { place: "the ledger".into(), why };
            self.note(Note::Dropped(pending.ticket, pending.outcome, fault));
        }
        for (ticket, held) in std::mem::take(&mut self.held) {
            if !held.is_lost {
                self.note(Note::Abandoned(ticket));
            }
        }
        self.end();
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        self.actions.push(Action::End);
    }

    pub(super) fn phase_alarm_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Working | Phase::Ended => None,
            Phase::Finishing(until_ms) => Some(until_ms),
            // Late already: the answer to what is under way comes by itself.
            Phase::Stopping(until_ms) => self.flights.is_empty().then_some(until_ms),
        }
    }
}
