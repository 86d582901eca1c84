//! What a holder says while it works.

use super::Rules;
use super::claimancy::{Claimancy, Refusal, claimancy};
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::{Facts, Standing};
use crate::policy::{MOST_PER_CALL, check_lease};
use crate::rows::Rows;
use crate::store::{Beat, Claimant, Heartbeats, News, Report};
use crate::transition::Event;
use crate::vitals::{Card, Presence, Registered};

/// The longest progress text, in bytes.
const MOST_PROGRESS: usize = 4 * 1024;

impl Heartbeats {
    /// Refuses a lease of no length, and more than one call may extend.
    pub fn check(&self) -> Result<()> {
        check_lease(self.lease)?;
        super::check_size("number of heartbeats", self.beats.len(), MOST_PER_CALL)
    }
}

impl<R: Rows> Rules<'_, R> {
    /// Takes note of the worker, and extends leases; a lost one is told, and changes nothing.
    pub fn heartbeat(&mut self, beats: &Heartbeats) -> Result<Vec<Result<Beat>>> {
        beats.check()?;
        match &beats.worker {
            Some(Presence::Here(card)) => self.see(card)?,
            Some(Presence::Gone(id)) => self.rows.remove_worker(id)?,
            None => {}
        }
        self.rows.prefetch(&mut beats.beats.iter().map(|(id, _)| id))?;
        let mut answers = Vec::with_capacity(beats.beats.len());
        for (id, claimant) in &beats.beats {
            match self.held(id, claimant) {
                Ok((row, mut standing)) => {
                    let identity = self.rows.identity(row)?;
                    let lease = self.lease_of(beats.lease, &identity)?;
                    let until = self.now.plus_ms(lease.as_millis());
                    let facts = Facts { lease_expires_at: Some(until), ..Facts::at(self.now) };
                    self.advance(row, &mut standing, Event::Touch, &facts)?;
                    answers.push(Ok(Beat {
                        lease_expires_at: standing.lease_expires_at.unwrap_or(until),
                        cancel_requested: standing.cancel_requested,
                    }));
                }
                Err(fault) if !fault.is_of_one_job() => return Err(fault),
                Err(fault) => answers.push(Err(fault)),
            }
        }
        Ok(answers)
    }

    /// Takes note that a worker is there.
    fn see(&mut self, card: &Card) -> Result<()> {
        let started_at = self.rows.worker(&card.id)?.map_or(self.now, |known| known.started_at);
        self.rows.save_worker(&Registered { card: card.clone(), started_at, seen_at: self.now })
    }

    /// Start, progress, steps.
    pub fn report(&mut self, report: &Report) -> Result<()> {
        let (row, mut standing) = self.held(&report.id, &report.claimant)?;
        let now = self.now;
        match &report.news {
            News::Started => {
                // Saying it again is no second start.
                if standing.state == crate::State::Running {
                    return Ok(());
                }
                self.change_detail(row, &mut standing, |detail| detail.started_at = Some(now))?;
                self.advance(row, &mut standing, Event::Start, &Facts::at(now))
            }
            News::Progress(text) => {
                if text.len() > MOST_PROGRESS {
                    let why = format!("has {} bytes, more than the {MOST_PROGRESS} allowed", text.len());
                    return Err(Error::invalid("progress", text, why));
                }
                self.change_detail(row, &mut standing, |detail| detail.progress = Some(text.clone()))?;
                self.advance(row, &mut standing, Event::Touch, &Facts::at(now))
            }
            News::Step { name, value } => {
                if name.is_empty() || name.len() > 200 || name.starts_with("wait:") {
                    let why = "is not 1 to 200 bytes, or begins with the ledger's own \"wait:\"";
                    return Err(Error::invalid("step", name, why));
                }
                let steps = self.rows.steps(row)?;
                let is_kept = steps.iter().any(|(kept, _)| kept == name);
                if !is_kept {
                    super::check_size("number of steps", steps.len() + 1, MOST_PER_CALL)?;
                }
                if is_kept { Ok(()) } else { self.rows.save_step(row, name, value) }
            }
        }
    }

    /// The job, if the claimant holds it. Whoever has settled does not hold it any more.
    fn held(&mut self, id: &JobId, claimant: &Claimant) -> Result<(u64, Standing)> {
        let (row, standing) = self.find(id)?;
        match claimancy(id, &standing, claimant)? {
            Claimancy::Holds => Ok((row, standing)),
            Claimancy::HasSettled => Err(Refusal::LeaseLost.of(id, &standing, claimant)),
        }
    }
}
