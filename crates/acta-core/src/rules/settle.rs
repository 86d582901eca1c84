//! Ending claims.

use super::Rules;
use super::claimancy::{Claimancy, Refusal, claimancy};
use super::enqueue::digest_text;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::history::Happening;
use crate::job::{Exception, Facts, FailureKind, Settled, Standing};
use crate::json::Json;
use crate::policy::{MOST_PER_CALL, Span, asked_delay_ms};
use crate::rows::Rows;
use crate::store::{Claim, ClaimAnswer, Failure, Outcome, SettleAnswer, Settlement, Wave};
use crate::transition::Event;

/// The longest message of a failure, in bytes; what is over is cut, since refusing it would lose the failure.
const MOST_MESSAGE: usize = 64 * 1024;
/// The longest code of a failure, likewise.
const MOST_CODE: usize = 1024;

impl<R: Rows> Rules<'_, R> {
    /// Settles a wave: the good ones are applied, the refused ones named.
    pub fn settle(&mut self, settlements: &[Settlement]) -> Result<Vec<Result<SettleAnswer>>> {
        check_wave(settlements)?;
        self.rows.prefetch(&mut settlements.iter().map(|settlement| &settlement.id))?;
        let mut answers = Vec::with_capacity(settlements.len());
        for settlement in settlements {
            match self.settle_one(settlement) {
                // A substrate that fails takes the whole wave with it.
                Err(fault) if !fault.is_of_one_job() => return Err(fault),
                answer => answers.push(answer),
            }
        }
        Ok(answers)
    }

    /// Settles a wave and claims, as one operation.
    pub fn exchange(
        &mut self,
        settlements: &[Settlement],
        claim: &Claim,
    ) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        let settled = self.settle(settlements)?;
        Ok((settled, self.claim(claim)?))
    }

    fn settle_one(&mut self, settlement: &Settlement) -> Result<SettleAnswer> {
        let Settlement { id, claimant, outcome } = settlement;
        outcome.check()?;
        let (row, mut standing) = self.find(id)?;
        let mark = outcome.mark();
        if let Claimancy::HasSettled = claimancy(id, &standing, claimant)? {
            return match standing.settled {
                Some(settled) if settled.mark == mark => {
                    Ok(SettleAnswer { state: settled.state, run_at: settled.run_at })
                }
                _ => Err(Refusal::OtherOutcome.of(id, &standing, claimant)),
            };
        }
        self.end_claim(row, &mut standing, outcome, mark)
    }

    fn end_claim(&mut self, row: u64, standing: &mut Standing, outcome: &Outcome, mark: i64) -> Result<SettleAnswer> {
        let mut facts = Facts::at(self.now);
        let event = self.judge(row, standing, outcome, &mut facts)?;
        self.write_outcome(row, standing, outcome, event, facts.run_at)?;
        let run_at = match event {
            Event::RetryLater | Event::SnoozeLater => facts.run_at,
            Event::Wait => facts.wait_until,
            _ => None,
        };
        // The state is known before the step is taken: it is part of the row that the step saves.
        let to = crate::transition::transition(standing.state, event).map_or(standing.state, |step| step.to);
        standing.settled = Some(Settled { mark, state: to, run_at });
        self.advance(row, standing, event, &facts)?;
        Ok(SettleAnswer { state: to, run_at })
    }

    /// Which event an outcome is. A success under a valid fence wins over a requested cancel; nothing else does.
    fn judge(&mut self, row: u64, standing: &Standing, outcome: &Outcome, facts: &mut Facts<'_>) -> Result<Event> {
        let later = |at: Option<Timestamp>, now| at.filter(|&at| at > now);
        Ok(match outcome {
            Outcome::Succeeded(_) => Event::Succeed,
            Outcome::Cancelled => Event::Withdraw,
            _ if standing.cancel_requested => Event::Withdraw,
            Outcome::Failed(failure) => {
                let family = self.rows.queue().namespace.family();
                let is_final = failure.kind == FailureKind::Business && family.business_is_final();
                if is_final || !standing.retryable || standing.attempts >= standing.max_attempts {
                    return Ok(Event::Fail);
                }
                let delay = self.delay_ms(row, standing, failure.retry_after)?;
                facts.run_at = (delay > 0).then(|| self.now.plus_ms(delay));
                if facts.run_at.is_some() { Event::RetryLater } else { Event::RetryNow }
            }
            Outcome::Wait { until, signal: Some(signal) } => {
                if let Some(payload) = self.rows.pop_signal(row, signal)? {
                    self.keep_wait(row, signal.as_str(), Some(&payload))?;
                    return Ok(Event::WaitMet);
                }
                facts.wait_until = *until;
                Event::Wait
            }
            Outcome::Wait { until, signal: None } => {
                facts.run_at = later(*until, self.now);
                if facts.run_at.is_some() { Event::SnoozeLater } else { Event::SnoozeNow }
            }
            Outcome::Snooze(until) => {
                facts.run_at = later(Some(*until), self.now);
                if facts.run_at.is_some() { Event::SnoozeLater } else { Event::SnoozeNow }
            }
            Outcome::Release => Event::Release,
        })
    }

    fn delay_ms(&mut self, row: u64, standing: &Standing, retry_after: Option<Span>) -> Result<i64> {
        if let Some(asked) = retry_after {
            return Ok(asked_delay_ms(asked, self.random));
        }
        let backoff = self.rows.identity(row)?.backoff.unwrap_or_default();
        Ok(backoff.delay_ms(standing.attempts, self.random))
    }

    /// What the outcome leaves in the row's detail and in the record.
    fn write_outcome(
        &mut self,
        row: u64,
        standing: &mut Standing,
        outcome: &Outcome,
        event: Event,
        run_at: Option<Timestamp>,
    ) -> Result<()> {
        let fence = standing.fence;
        let actor = standing.claimed_by.clone();
        let mut happening = None;
        let mut exception = None;
        match (event, outcome) {
            (Event::Succeed, Outcome::Succeeded(output)) => {
                standing.business = false;
                if output.is_some() || standing.has_detail {
                    self.change_detail(row, standing, |detail| {
                        detail.output.clone_from(output);
                        detail.exception = None;
                    })?;
                }
            }
            (Event::Withdraw, outcome) => {
                happening = Some(Happening::Cancelled);
                exception = Some(match outcome {
                    Outcome::Failed(failure) => failure.exception(),
                    _ => Failure {
                        code: Some("cancelled".into()),
                        ..Failure::new(FailureKind::System, "cancelled; its holder stopped")
                    }
                    .exception(),
                });
            }
            (_, Outcome::Failed(failure)) => {
                standing.business = event == Event::Fail && failure.kind == FailureKind::Business;
                happening = Some(if event == Event::Fail { Happening::Failed } else { Happening::Retried });
                exception = Some(failure.exception());
            }
            (Event::Wait, Outcome::Wait { signal: Some(signal), .. }) => {
                happening = Some(Happening::Waited);
                self.change_detail(row, standing, |detail| detail.wait = Some(signal.clone()))?;
            }
            (Event::SnoozeNow | Event::SnoozeLater, _) => happening = Some(Happening::Snoozed),
            (Event::Release, _) => happening = Some(Happening::Released),
            (_, _) => {}
        }
        if let Some(exception) = &exception {
            self.change_detail(row, standing, |detail| detail.exception = Some(exception.clone()))?;
        }
        let Some(happening) = happening else { return Ok(()) };
        let exception = exception.and_then(|exception| serde_json::to_string(&exception).ok()).map(Json::trusted);
        self.note(row, happening, |entry| {
            entry.fence = Some(fence);
            entry.actor = actor;
            entry.run_at = run_at;
            entry.exception = exception;
        })
    }
}

fn check_wave(settlements: &[Settlement]) -> Result<()> {
    super::check_size("number of settlements", settlements.len(), MOST_PER_CALL)
}

impl Wave {
    /// Refuses more than one call may settle.
    pub fn check(&self) -> Result<()> {
        check_wave(&self.settlements)
    }
}

impl Failure {
    /// What is kept of it in the job.
    pub fn exception(&self) -> Exception {
        Exception {
            kind: self.kind,
            message: cut(&self.message, MOST_MESSAGE),
            code: self.code.as_deref().map(|code| cut(code, MOST_CODE)),
            details: self.details.clone(),
        }
    }
}

impl Outcome {
    /// Refuses what could never end.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Wait { until: None, signal: None } => {
                Err(Error::invalid("wait", "", "has neither a time nor a signal: nothing could end it"))
            }
            _ => Ok(()),
        }
    }

    /// A digest of it in 60 bits, to know a repeated settle by. The commonest one costs nothing.
    pub fn mark(&self) -> i64 {
        match self {
            Self::Succeeded(None) => 0,
            other => digest_text(&written(other)) >> 4,
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
    format!("{}…", &text[..end])
}

/// An outcome as a text that every release and language can write: a JSON array of its word and its parts.
fn written(outcome: &Outcome) -> String {
    let text = match outcome {
        Outcome::Succeeded(output) => serde_json::to_string(&("succeeded", output)),
        Outcome::Failed(Failure { kind, message, code, details, retry_after }) => {
            serde_json::to_string(&("failed", kind, message, code, details, retry_after))
        }
        Outcome::Wait { until, signal } => serde_json::to_string(&("wait", until, signal)),
        Outcome::Snooze(until) => serde_json::to_string(&("snooze", until)),
        Outcome::Release => serde_json::to_string(&("release",)),
        Outcome::Cancelled => serde_json::to_string(&("cancelled",)),
    };
    // Texts and numbers alone can always be written.
    text.unwrap_or_default()
}
