//! The verbs of the ledger, written once over [`Rows`].
//!
//! Each verb judges what was asked (what may happen?), lets [`crate::transition`] decide the step, and carries its
//! effects out on the rows. A provider calls one verb inside one atomic operation of its own.

mod claim;
mod claimancy;
mod deliver;
mod due;
mod enqueue;
mod explain;
mod hold;
mod lanes;
mod operate;
mod overview;
mod prune;
mod report;
mod settle;

pub use claimancy::Refusal;
pub use enqueue::digest;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::history::{Entry, Happening};
use crate::id::JobId;
use crate::job::{Detail, Exception, Facts, FailureKind, Job, KeyHold, Standing};
use crate::job::{LaneNumber, Tally};
use crate::json::Json;
use crate::name::Label;
use crate::random::Random;
use crate::rows::Rows;
use crate::transition::{Effect, Event, transition};
use crate::vitals::{Flow, minute_of};

/// Refuses more of something than one call, or one job, may have.
fn check_size(what: &'static str, size: usize, most: usize) -> Result<()> {
    if size <= most {
        return Ok(());
    }
    Err(Error::invalid(what, &size.to_string(), format!("is more than the {most} allowed")))
}

/// The verbs over one namespace's rows, at one instant.
pub struct Rules<'a, R: Rows> {
    rows: &'a mut R,
    now: Timestamp,
    random: &'a mut dyn Random,
}

impl<'a, R: Rows> Rules<'a, R> {
    /// The verbs over `rows` at the instant `now`.
    pub fn new(rows: &'a mut R, now: Timestamp, random: &'a mut dyn Random) -> Self {
        Self { rows, now, random }
    }

    /// One whole job.
    pub fn job(&mut self, id: &JobId) -> Result<Job> {
        let (row, standing) = self.find(id)?;
        let identity = self.rows.identity(row)?;
        let detail = if standing.has_detail { self.rows.detail(row)? } else { Detail::default() };
        Ok(Job { row, identity, standing, detail })
    }

    /// The job that holds a deduplication key, if its row is still there.
    pub fn key_holder(&mut self, key: &Label) -> Result<Option<JobId>> {
        let record = self.rows.key(key)?;
        Ok(record.filter(|record| record.expires_at.is_none()).map(|record| record.id))
    }

    /// The kept results of a job's steps and waits.
    pub fn steps(&mut self, id: &JobId) -> Result<Vec<(String, Json)>> {
        let (row, _) = self.find(id)?;
        self.rows.steps(row)
    }

    /// Finds a job by its id.
    fn find(&mut self, id: &JobId) -> Result<(u64, Standing)> {
        self.rows.find(id)?.ok_or_else(|| Error::not_found("job", id.as_str()))
    }

    /// Judges the event, carries out its step, keeps the row, and lets the lane go on where a head has ended.
    fn advance(&mut self, row: u64, standing: &mut Standing, event: Event, facts: &Facts<'_>) -> Result<()> {
        let Some(step) = transition(standing.state, event) else {
            let id = self.rows.identity(row)?.id;
            let why = format!("{event:?} is not possible in this state");
            return Err(Error::Refused { id, state: standing.state, why });
        };
        let before = standing.tally();
        standing.apply(step, facts);
        let mut ended_lane = None;
        if step.effects.contains(&Effect::Finish) {
            ended_lane = self.finish(row, standing)?;
        }
        if !standing.state.is_head() {
            standing.lane_paused = false;
        }
        self.rows.save(row, standing)?;
        if standing.may_be_claimed() {
            self.rows.wake();
        }
        self.count(Some(before), Some(standing.tally()));
        match ended_lane {
            Some(lane) => self.leave_lane(lane, step.effects.contains(&Effect::PromoteNext)),
            None => Ok(()),
        }
    }

    /// Moves one job from one count to another, and notes in what minute it did.
    fn count(&mut self, from: Option<Tally>, to: Option<Tally>) {
        self.rows.count(from, to);
        let flow = Flow::of(from, to);
        if !flow.is_nothing() {
            self.rows.flow(minute_of(self.now), flow);
        }
    }

    /// What an end does besides the state: the retention starts, a key held while live is freed, the lane is left.
    fn finish(&mut self, row: u64, standing: &mut Standing) -> Result<Option<LaneNumber>> {
        standing.prune_at = Some(standing.pruned_from(&self.rows.queue().settings, self.now));
        if standing.key_hold == KeyHold::WhileLive {
            let identity = self.rows.identity(row)?;
            if let Some(key) = identity.dedup_key
                && self.rows.key(&key)?.is_some_and(|record| record.id == identity.id)
            {
                self.rows.remove_key(&key)?;
            }
        }
        Ok(standing.lane.take())
    }

    /// One live member less; after the head, the next one is the head.
    fn leave_lane(&mut self, number: LaneNumber, promote: bool) -> Result<()> {
        let mut lane = self.rows.lane_numbered(number)?;
        lane.live = lane.live.saturating_sub(1);
        if lane.live == 0 && !lane.paused {
            return self.rows.remove_lane(number);
        }
        self.rows.save_lane(&lane)?;
        if promote && let Some((row, mut next)) = self.rows.lane_next(number)? {
            next.lane_paused = lane.paused;
            let later = next.run_at.is_some_and(|at| at > self.now);
            let event = if later { Event::PromoteLater } else { Event::PromoteNow };
            self.advance(row, &mut next, event, &Facts::at(self.now))?;
        }
        Ok(())
    }

    /// Changes the detail of a job whose standing will be saved after it.
    fn change_detail(&mut self, row: u64, standing: &mut Standing, change: impl FnOnce(&mut Detail)) -> Result<()> {
        let before = if standing.has_detail { self.rows.detail(row)? } else { Detail::default() };
        let mut after = before.clone();
        change(&mut after);
        if after != before {
            self.rows.save_detail(row, &after)?;
        }
        standing.has_detail = after != Detail::default();
        Ok(())
    }

    /// Ends a job by a failure that no holder reported.
    fn end_with(&mut self, row: u64, standing: &mut Standing, event: Event, code: &str, message: String) -> Result<()> {
        let exception = Exception { kind: FailureKind::System, message, code: Some(code.into()), details: None };
        self.change_detail(row, standing, |detail| detail.exception = Some(exception))?;
        standing.business = false;
        let facts = Facts::at(self.now);
        self.advance(row, standing, event, &facts)
    }

    fn note(&mut self, row: u64, event: Happening, fill: impl FnOnce(&mut Entry)) -> Result<()> {
        let mut entry = Entry::of_job(self.now, row, event);
        fill(&mut entry);
        self.rows.record(&entry)
    }
}
