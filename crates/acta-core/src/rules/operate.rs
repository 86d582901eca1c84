//! Operators' acts on jobs.

use super::Rules;
use crate::error::{Error, Result};
use crate::history::{Entry, Happening};
use crate::id::JobId;
use crate::job::{Detail, Exception, Facts, FailureKind, Identity, Standing};
use crate::name::Label;
use crate::policy::{MOST_PER_CALL, check_priority};
use crate::rows::{KeyRecord, Rows};
use crate::state::State;
use crate::store::{Action, Operated, Operation};
use crate::transition::{Event, transition};

impl Action {
    /// Whether the act makes sense for a job in this state; it may be refused there for other reasons.
    pub fn applies_to(&self, state: State) -> bool {
        let is_possible = |event| transition(state, event).is_some();
        match self {
            Self::Cancel { .. } => is_possible(Event::Cancel) || is_possible(Event::RequestCancel),
            Self::Skip => state.is_head(),
            Self::Pause => is_possible(Event::Pause),
            Self::Resume => is_possible(Event::Resume),
            Self::Reprioritise(_) => is_possible(Event::Reprioritise),
            Self::Postpone(_) => is_possible(Event::PostponeNow) || is_possible(Event::PostponeLater),
            Self::Restart => is_possible(Event::RestartNow),
            Self::Signal { .. } => is_possible(Event::SignalKept) || is_possible(Event::SignalAwaited),
        }
    }
}

impl<R: Rows> Rules<'_, R> {
    /// Does the same to each of the jobs; one answer each.
    pub fn operate(&mut self, operation: &Operation) -> Result<Vec<Result<Operated>>> {
        super::check_size("number of jobs", operation.ids.len(), MOST_PER_CALL)?;
        check_reason(operation.reason.as_deref())?;
        self.rows.prefetch(&mut operation.ids.iter())?;
        let mut answers = Vec::with_capacity(operation.ids.len());
        for id in &operation.ids {
            match self.act(id, operation) {
                Err(fault) if !fault.is_of_one_job() => return Err(fault),
                answer => answers.push(answer),
            }
        }
        Ok(answers)
    }

    fn act(&mut self, id: &JobId, operation: &Operation) -> Result<Operated> {
        let (row, mut standing) = self.find(id)?;
        let before = standing.clone();
        match &operation.action {
            Action::Cancel { force } => self.cancel(id, row, &mut standing, *force, operation)?,
            Action::Skip => {
                let is_head = standing.lane.is_some() && standing.state.is_head();
                if !is_head {
                    return Err(refused(id, &standing, "it is not the head of a lane"));
                }
                self.cancel(id, row, &mut standing, false, operation)?;
            }
            Action::Pause if standing.paused => {}
            Action::Pause => self.mark(id, row, &mut standing, Event::Pause, Happening::Paused, operation)?,
            Action::Resume if !standing.paused && !standing.state.is_final() => {}
            Action::Resume => self.mark(id, row, &mut standing, Event::Resume, Happening::Resumed, operation)?,
            Action::Reprioritise(priority) => {
                check_priority(self.rows.queue().namespace.family(), *priority)?;
                let facts = Facts { priority: *priority, ..Facts::at(self.now) };
                self.try_advance(id, row, &mut standing, Event::Reprioritise, &facts)?;
                self.note(row, Happening::Reprioritised, |entry| sign(entry, operation))?;
            }
            Action::Postpone(until) => {
                let run_at = Some(*until).filter(|&at| at > self.now);
                let event = if run_at.is_some() { Event::PostponeLater } else { Event::PostponeNow };
                let facts = Facts { run_at, ..Facts::at(self.now) };
                self.try_advance(id, row, &mut standing, event, &facts)?;
                self.note(row, Happening::Postponed, |entry| {
                    sign(entry, operation);
                    entry.run_at = run_at;
                })?;
            }
            Action::Restart => self.restart(id, row, &mut standing, operation)?,
            Action::Signal { name, payload } => {
                let waits_for = if standing.state == State::Waiting { self.rows.detail(row)?.wait } else { None };
                if waits_for.as_ref() == Some(name) {
                    self.end_wait(row, &mut standing, Some(payload))?;
                    self.advance(row, &mut standing, Event::SignalAwaited, &Facts::at(self.now))?;
                } else {
                    self.try_advance(id, row, &mut standing, Event::SignalKept, &Facts::at(self.now))?;
                    self.rows.push_signal(row, name, payload)?;
                }
                self.note(row, Happening::Signalled, |entry| {
                    sign(entry, operation);
                    entry.reason.get_or_insert_with(|| name.to_string());
                })?;
                return Ok(Operated {
                    state: standing.state,
                    changed: true,
                    cancel_requested: standing.cancel_requested,
                });
            }
        }
        let changed = standing != before;
        Ok(Operated { state: standing.state, changed, cancel_requested: standing.cancel_requested })
    }

    /// Ends a job nobody works on at once; otherwise asks its holder, unless forced.
    fn cancel(
        &mut self,
        id: &JobId,
        row: u64,
        standing: &mut Standing,
        force: bool,
        operation: &Operation,
    ) -> Result<()> {
        let event = match standing.state {
            State::Blocked | State::Ready | State::Scheduled | State::Waiting => Event::Cancel,
            State::Claimed | State::Running if force => Event::ForceCancel,
            State::Claimed | State::Running if standing.is_lapsed(self.now) => Event::Cancel,
            State::Claimed | State::Running if standing.cancel_requested => return Ok(()),
            State::Claimed | State::Running => Event::RequestCancel,
            State::Cancelled => return Ok(()),
            State::Succeeded | State::Failed => {
                return Err(refused(id, standing, "it has ended; there is nothing to cancel"));
            }
        };
        if event == Event::RequestCancel {
            return self.mark(id, row, standing, event, Happening::CancelRequested, operation);
        }
        let message = match &operation.reason {
            Some(reason) => format!("cancelled: {reason}"),
            None => "cancelled".into(),
        };
        let exception = Exception { kind: FailureKind::System, message, code: Some("cancelled".into()), details: None };
        self.change_detail(row, standing, |detail| {
            detail.exception = Some(exception);
            detail.wait = None;
        })?;
        self.mark(id, row, standing, event, Happening::Cancelled, operation)
    }

    fn mark(
        &mut self,
        id: &JobId,
        row: u64,
        standing: &mut Standing,
        event: Event,
        happening: Happening,
        operation: &Operation,
    ) -> Result<()> {
        let fence = Some(standing.fence).filter(|_| standing.state.is_held());
        self.try_advance(id, row, standing, event, &Facts::at(self.now))?;
        self.note(row, happening, |entry| {
            sign(entry, operation);
            entry.fence = fence;
        })
    }

    fn try_advance(
        &mut self,
        id: &JobId,
        row: u64,
        standing: &mut Standing,
        event: Event,
        facts: &Facts<'_>,
    ) -> Result<()> {
        if crate::transition::transition(standing.state, event).is_none() {
            let why = match standing.state {
                State::Claimed | State::Running => "a robot has it; cancel it, or wait",
                State::Waiting => "it waits for a signal; signal or cancel it",
                State::Succeeded | State::Failed | State::Cancelled => "it has ended",
                State::Blocked | State::Ready | State::Scheduled => "it is not possible now",
            };
            return Err(refused(id, standing, why));
        }
        self.advance(row, standing, event, facts)
    }

    /// A restarted job holds its key again, unless another one has it: a live one is in the way, and an ended one, or its
    /// tombstone, goes on answering for it.
    fn take_key_again(&mut self, identity: &Identity, key: &Label, state: State) -> Result<()> {
        if let Some(record) = self.rows.key(key)?
            && record.id != identity.id
            && record.expires_at.is_none_or(|expires| expires > self.now)
        {
            if record.expires_at.is_none() && !self.find(&record.id)?.1.state.is_final() {
                let why = format!("its key {:?} is held by the live job {}", key.as_str(), record.id);
                return Err(Error::Refused { id: identity.id.clone(), state, why });
            }
            return Ok(());
        }
        let digest = super::enqueue::digest(&identity.payload);
        let record = KeyRecord { id: identity.id.clone(), state: State::Ready, digest, expires_at: None };
        self.rows.save_key(key, &record)
    }

    /// From the beginning: a new place at the end of the order and of its lane; fence and keys stay.
    fn restart(&mut self, id: &JobId, row: u64, standing: &mut Standing, operation: &Operation) -> Result<()> {
        if !matches!(standing.state, State::Failed | State::Cancelled) {
            return Err(refused(id, standing, "only a failed or cancelled job can be restarted"));
        }
        let identity = self.rows.identity(row)?;
        if let Some(key) = &identity.dedup_key {
            self.take_key_again(&identity, key, standing.state)?;
        }
        let place = self.rows.next_number()?;
        let mut event = Event::RestartNow;
        if let Some(lane) = &identity.lane {
            let mut joined = Standing { state: State::Ready, ..standing.clone() };
            self.join_lane(lane, &mut joined)?;
            standing.lane = joined.lane;
            standing.lane_paused = joined.lane_paused;
            if joined.state == State::Blocked {
                event = Event::RestartBlocked;
            }
        }
        if standing.has_detail {
            self.rows.save_detail(row, &Detail::default())?;
            standing.has_detail = false;
        }
        self.rows.forget(row)?;
        self.advance(row, standing, event, &Facts { place, ..Facts::at(self.now) })?;
        self.note(row, Happening::Restarted, |entry| sign(entry, operation))
    }
}

/// Refuses a reason that is no line for people any more.
pub(super) fn check_reason(reason: Option<&str>) -> Result<()> {
    const MOST_REASON: usize = 4 * 1024;
    match reason {
        Some(reason) if reason.len() > MOST_REASON => {
            let why = format!("has {} bytes, more than the {MOST_REASON} allowed", reason.len());
            Err(Error::invalid("reason", reason, why))
        }
        _ => Ok(()),
    }
}

fn refused(id: &JobId, standing: &Standing, why: &str) -> Error {
    Error::Refused { id: id.clone(), state: standing.state, why: why.into() }
}

fn sign(entry: &mut Entry, operation: &Operation) {
    entry.actor.clone_from(&operation.actor);
    entry.reason.clone_from(&operation.reason);
}
