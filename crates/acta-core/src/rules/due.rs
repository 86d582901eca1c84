//! What time alone brings about: due instants, lapsed leases, expiries. Claim and recover share it.

use super::Rules;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::history::Happening;
use crate::job::{Facts, Standing};
use crate::json::Json;
use crate::policy::{MOST_DUE, MOST_LOST_LEASES};
use crate::rows::Rows;
use crate::transition::Event;

/// What has come due for a job at `now`, if anything has.
pub(super) fn judge(standing: &Standing, now: Timestamp, queue_paused: bool) -> Option<Event> {
    let has_come = |instant: Option<Timestamp>| instant.is_some_and(|at| at <= now);
    if standing.is_expired(now) {
        return Some(Event::Expire);
    }
    if standing.is_lapsed(now) {
        return if standing.cancel_requested {
            Some(Event::LapseCancelled)
        } else if queue_paused || standing.lane_paused {
            None
        } else if standing.lost_leases >= MOST_LOST_LEASES {
            Some(Event::LapseExhausted)
        } else {
            Some(Event::Lapse)
        };
    }
    let is_due = match standing.state {
        crate::State::Scheduled => has_come(standing.run_at),
        crate::State::Waiting => has_come(standing.wait_until),
        crate::State::Blocked
        | crate::State::Ready
        | crate::State::Claimed
        | crate::State::Running
        | crate::State::Succeeded
        | crate::State::Failed
        | crate::State::Cancelled => false,
    };
    is_due.then_some(Event::Due)
}

impl<R: Rows> Rules<'_, R> {
    /// Brings in what has become due, at most 1,000 jobs by instant, then place; the rows that changed.
    pub fn recover(&mut self) -> Result<Vec<u64>> {
        let paused = self.rows.queue().paused;
        let mut changed = Vec::new();
        for (row, _) in self.rows.due(self.now, !paused, MOST_DUE)? {
            // Read again: what an earlier one ended may have promoted this one.
            let mut standing = self.rows.standing(row)?;
            if let Some(event) = judge(&standing, self.now, paused) {
                self.bring_in(row, &mut standing, event)?;
                changed.push(row);
            }
        }
        Ok(changed)
    }

    fn bring_in(&mut self, row: u64, standing: &mut Standing, event: Event) -> Result<()> {
        let lost = |entry: &mut crate::history::Entry, standing: &Standing| {
            entry.fence = Some(standing.fence);
            entry.actor.clone_from(&standing.claimed_by);
        };
        match event {
            Event::Expire => {
                let message = "not claimed before it expired".to_owned();
                self.note(row, Happening::Expired, |_| {})?;
                self.end_with(row, standing, event, "expired", message)
            }
            Event::LapseExhausted => {
                self.note(row, Happening::LeaseLost, |entry| lost(entry, standing))?;
                let message = format!("lease lost {} times", MOST_LOST_LEASES + 1);
                self.end_with(row, standing, event, "lease-lost", message)
            }
            Event::LapseCancelled => {
                self.note(row, Happening::LeaseLost, |entry| lost(entry, standing))?;
                self.note(row, Happening::Cancelled, |_| {})?;
                let message = "cancelled; its holder's lease lapsed".to_owned();
                self.end_with(row, standing, event, "cancelled", message)
            }
            Event::Due if standing.wait_until.is_some() => {
                self.note(row, Happening::WaitTimedOut, |_| {})?;
                self.end_wait(row, standing, None)?;
                self.advance(row, standing, event, &Facts::at(self.now))
            }
            other => {
                if other == Event::Lapse {
                    self.note(row, Happening::LeaseLost, |entry| lost(entry, standing))?;
                }
                self.advance(row, standing, other, &Facts::at(self.now))
            }
        }
    }

    /// Keeps what a wait came to as the job's next `wait:<n>` step, so that a handler that runs again finds it.
    pub(super) fn end_wait(&mut self, row: u64, standing: &mut Standing, payload: Option<&Json>) -> Result<()> {
        let signal = if standing.has_detail { self.rows.detail(row)?.wait } else { None };
        let Some(signal) = signal else { return Ok(()) };
        self.keep_wait(row, signal.as_str(), payload)?;
        self.change_detail(row, standing, |detail| detail.wait = None)
    }

    /// The step of a wait for `signal` that ended: with its payload, or timed out.
    pub(super) fn keep_wait(&mut self, row: u64, signal: &str, payload: Option<&Json>) -> Result<()> {
        let earlier = self.rows.steps(row)?.iter().filter(|(name, _)| name.starts_with("wait:")).count();
        let value = match payload {
            Some(payload) => format!(r#"{{"signal":"{signal}","payload":{payload}}}"#),
            None => format!(r#"{{"signal":"{signal}","timedOut":true}}"#),
        };
        self.rows.save_step(row, &format!("wait:{}", earlier + 1), &Json::trusted(value))
    }
}
