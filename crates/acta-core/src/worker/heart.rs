//! Keeping leases: all of a worker's in one call, at a third of the shortest or more often.

use super::backoff::Retry;
use super::shutdown::Phase;
use super::{Action, Note, Ticket, Worker};
use crate::error::Result;
use crate::random::Random;
use crate::store::Beat;

/// The heartbeat under way, and those that failed.
#[derive(Debug)]
pub(super) struct Heart {
    /// Whose leases are being extended, and since when.
    flight: Option<(Vec<Ticket>, u64)>,
    retry: Retry,
}

impl Default for Heart {
    fn default() -> Self {
        Self { flight: None, retry: Retry::of_outage() }
    }
}

impl Worker {
    /// Extends all leases, if the time for one has come.
    pub(super) fn beat(&mut self, now_ms: u64) {
        if self.heart_alarm_ms().is_none_or(|at_ms| now_ms < at_ms) {
            return;
        }
        let is_ours = self.held.iter().filter(|(_, held)| !held.is_lost);
        let beats: Vec<Ticket> = is_ours.map(|(ticket, _)| ticket.clone()).collect();
        self.heart.flight = Some((beats.clone(), now_ms));
        self.actions.push(Action::Heartbeat(beats));
    }

    pub(super) fn take_beaten(&mut self, now_ms: u64, answer: Result<Vec<Result<Beat>>>, random: &mut dyn Random) {
        let Some((tickets, began_ms)) = self.heart.flight.take() else { return };
        let answers = match answer {
            Ok(answers) => answers,
            Err(fault) => {
                let again_in_ms = self.heart.retry.failed(now_ms, random);
                return self.note(Note::Failing(fault, again_in_ms));
            }
        };
        self.heart.retry.succeeded();
        for (ticket, answer) in tickets.iter().zip(answers) {
            match answer {
                Ok(beat) => {
                    if let Some(held) = self.held.get_mut(ticket) {
                        held.since_ms = began_ms;
                    }
                    if beat.cancel_requested {
                        self.cancel(ticket);
                    }
                }
                // Lost, or gone altogether: either way it is not ours.
                Err(fault) => self.lose(ticket, fault),
            }
        }
    }

    /// When the next heartbeat is due.
    pub(super) fn heart_alarm_ms(&self) -> Option<u64> {
        if self.heart.flight.is_some() || self.phase == Phase::Ended {
            return None;
        }
        let is_ours = self.held.values().filter(|held| !held.is_lost);
        let pause_ms = |lease_ms: u64| (lease_ms / 3).min(self.settings.beat_ms).max(1);
        let due_ms = is_ours.map(|held| held.since_ms + pause_ms(held.lease_ms)).min()?;
        Some(due_ms.max(self.heart.retry.next_ms()))
    }
}
