//! Settling and claiming: one call does both.

use super::shutdown::Phase;
use super::{Action, Exchanged, Note, Ticket, Worker};
use crate::error::{Error, Result};
use crate::policy::MOST_PER_CALL;
use crate::random::Random;
use crate::store::Outcome;

/// It looks no more often than this because of an instant that it was told: the ledger's clock may be behind ours.
const LEAST_POLL_MS: u64 = 10;

/// A result that waits to be settled.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome,
    /// When the job may be somebody else's: until then it is tried again.
    pub(super) lapses_at_ms: u64,
}

/// An exchange under way.
#[derive(Debug)]
pub(super) struct Flight {
    settlements: Vec<Pending>,
    pub(super) wanted: usize,
    began_ms: u64,
}

impl Worker {
    /// Keeps a result for the next exchange.
    pub(super) fn owe(&mut self, ticket: Ticket, outcome: Outcome, lapses_at_ms: u64) {
        self.pending.push(Pending { ticket, outcome, lapses_at_ms });
    }

    /// Begins an exchange if there is a reason for one.
    pub(super) fn exchange(&mut self, now_ms: u64, random: &mut dyn Random) {
        if matches!(self.phase, Phase::Ended)
            || self.flights.len() >= self.settings.flights
            || now_ms < self.outage.next_ms()
        {
            return;
        }
        let wanted = self.wanted(now_ms);
        // Results take the claim along: it costs little in the same commit, and what they end may promote another.
        if self.pending.is_empty() && (wanted == 0 || !(self.is_hungry || now_ms >= self.poll_at_ms)) {
            return;
        }
        let rest = self.pending.split_off(self.pending.len().min(MOST_PER_CALL));
        let settlements = std::mem::replace(&mut self.pending, rest);
        self.last_flight += 1;
        let told = settlements.iter().map(|owed| (owed.ticket.clone(), owed.outcome.clone())).collect();
        self.actions.push(Action::Exchange { number: self.last_flight, settlements: told, wanted });
        self.flights.insert(self.last_flight, Flight { settlements, wanted, began_ms: now_ms });
        if wanted > 0 {
            self.is_hungry = false;
            self.poll_at_ms = now_ms + spread_ms(self.settings.poll_ms, random);
        }
    }

    /// How many jobs to claim now.
    fn wanted(&self, now_ms: u64) -> usize {
        let may_claim = self.phase == Phase::Working && now_ms >= self.refusal.next_ms();
        if may_claim { self.free_slots() } else { 0 }
    }

    pub(super) fn take_exchanged(
        &mut self,
        now_ms: u64,
        number: u64,
        answer: Result<Exchanged>,
        random: &mut dyn Random,
    ) {
        let Some(flight) = self.flights.remove(&number) else { return };
        match answer {
            Ok(answer) => self.take_done(now_ms, flight, answer),
            Err(fault) => self.take_not_done(now_ms, flight, &fault, random),
        }
    }

    fn take_done(&mut self, now_ms: u64, flight: Flight, answer: Exchanged) {
        let Exchanged { settled, claimed, next_in_ms } = answer;
        let was_failing = self.outage.succeeded();
        // A call that did not claim says nothing about claims.
        let was_refused = flight.wanted > 0 && self.refusal.succeeded();
        if was_failing || was_refused {
            self.note(Note::Recovered);
        }
        for (owed, answer) in flight.settlements.into_iter().zip(settled) {
            self.note(match answer {
                Ok(answer) => Note::Settled(owed.ticket, owed.outcome, answer),
                Err(fault) => Note::Dropped(owed.ticket, owed.outcome, fault),
            });
        }
        if flight.wanted > 0 && claimed.len() >= flight.wanted {
            self.is_hungry = true;
        }
        if let Some(next_in_ms) = next_in_ms {
            self.poll_at_ms = self.poll_at_ms.min(now_ms.saturating_add(next_in_ms.max(LEAST_POLL_MS)));
        }
        for job in claimed {
            if self.phase == Phase::Working {
                self.start(job, flight.began_ms);
            } else {
                // Claimed by a call that was begun before the shutdown: nobody has begun to work on it.
                let held = super::Held::of(&job, flight.began_ms);
                self.owe(Ticket::of(&job), Outcome::Release, held.lapses_at_ms());
            }
        }
    }

    fn take_not_done(&mut self, now_ms: u64, flight: Flight, fault: &Error, random: &mut dyn Random) {
        // Refused is what was asked, not the ledger's health: with a claim it may have been the claim, and results
        // are tried without it at once.
        let is_of_the_claim = flight.wanted > 0 && !fault.is_unavailable();
        let retry = if is_of_the_claim { &mut self.refusal } else { &mut self.outage };
        let again_in_ms = retry.failed(now_ms, random);
        self.note(Note::Failing(fault.clone(), again_in_ms));
        self.is_hungry |= flight.wanted > 0;
        let mut owed = flight.settlements;
        owed.append(&mut self.pending);
        for pending in owed {
            if now_ms < pending.lapses_at_ms {
                self.pending.push(pending);
            } else {
                self.note(Note::Dropped(pending.ticket, pending.outcome, fault.clone()));
            }
        }
    }

    pub(super) fn exchange_alarm_ms(&self) -> Option<u64> {
        if self.phase == Phase::Ended || self.flights.len() >= self.settings.flights {
            return None;
        }
        if !self.pending.is_empty() {
            return Some(self.outage.next_ms());
        }
        if self.phase != Phase::Working || self.free_slots() == 0 {
            return None;
        }
        let look_at_ms = if self.is_hungry { 0 } else { self.poll_at_ms };
        Some(look_at_ms.max(self.outage.next_ms()).max(self.refusal.next_ms()))
    }
}

/// About so long: a tenth more or less, so that peers do not come all at once.
fn spread_ms(base_ms: u64, random: &mut dyn Random) -> u64 {
    let tenth = base_ms / 10;
    base_ms - tenth + random.next_u64() % (2 * tenth + 1)
}
