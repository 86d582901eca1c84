//! Handing out jobs.

use super::Rules;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Tally;
use crate::job::{Detail, Facts, Identity, Job};
use crate::policy::{MOST_PER_CALL, Span, check_lease};
use crate::rows::Rows;
use crate::state::State;
use crate::store::{Claim, ClaimAnswer, ClaimOutcome, LeftOut, Nothing, Trace, Why};
use crate::transition::Event;

/// How many jobs a trace names as left out.
const MOST_TRACED: usize = 100;

impl<R: Rows> Rules<'_, R> {
    /// Takes up to `count` jobs: brings in what is due, then picks by priority and place.
    pub fn claim(&mut self, claim: &Claim) -> Result<ClaimAnswer> {
        claim.check()?;
        for name in claim.names.iter().flatten() {
            // A name that differs from a known one only by case would never find a job.
            self.rows.definition(name)?;
        }
        let brought_in = self.recover()?;
        let brought_in = if claim.trace { self.states(&brought_in)? } else { Vec::new() };
        let outcome = self.pick(claim)?;
        let trace = if claim.trace { Some(self.trace(brought_in, claim, &outcome)?) } else { None };
        Ok(ClaimAnswer { outcome, trace })
    }

    fn pick(&mut self, claim: &Claim) -> Result<ClaimOutcome> {
        let paused = self.rows.queue().paused;
        let candidates =
            if paused { Vec::new() } else { self.rows.candidates(self.now, claim.names.as_deref(), claim.count)? };
        if let Some(expected) = &claim.expect {
            let found = candidates.first().map(|(_, _, identity)| identity.id.clone());
            if found.as_ref() != Some(expected) {
                return Ok(ClaimOutcome::Mismatch { expected: expected.clone(), found });
            }
        }
        if candidates.is_empty() {
            let why = if claim.why { Some(self.why_nothing(claim)?) } else { None };
            return Ok(ClaimOutcome::Nothing(why));
        }
        let mut jobs = Vec::with_capacity(candidates.len());
        for (row, mut standing, identity) in candidates {
            let lease = self.lease_of(claim.lease, &identity)?;
            let facts = Facts {
                robot: Some(&claim.robot),
                lease_expires_at: Some(self.now.plus_ms(lease.as_millis())),
                ..Facts::at(self.now)
            };
            self.advance(row, &mut standing, Event::Claim, &facts)?;
            let detail = if standing.has_detail { self.rows.detail(row)? } else { Detail::default() };
            jobs.push(Job { row, identity, standing, detail });
        }
        Ok(ClaimOutcome::Claimed(jobs))
    }

    /// What the claim asks for, else the job, its definition, its queue, its family.
    pub(super) fn lease_of(&mut self, asked: Option<Span>, identity: &Identity) -> Result<Span> {
        if let Some(lease) = asked.or(identity.lease) {
            return Ok(lease);
        }
        if let Some(name) = &identity.name
            && let Some(lease) = self.rows.definition(name)?.and_then(|definition| definition.lease)
        {
            return Ok(lease);
        }
        let queue = self.rows.queue();
        let family = queue.namespace.family();
        Ok(queue.settings.lease.unwrap_or_else(|| Span::from_millis(family.lease_ms())))
    }

    /// Whether a claim would find something that is ready.
    pub fn is_candidate_there(&mut self, claim: &Claim) -> Result<bool> {
        Ok(!self.rows.queue().paused && !self.rows.candidates(self.now, claim.names.as_deref(), 1)?.is_empty())
    }

    /// Why a claim finds nothing, and when that may change.
    pub fn why_nothing(&mut self, claim: &Claim) -> Result<Nothing> {
        let names = claim.names.as_deref();
        let at = self.now;
        let because = |why, next_at| Ok(Nothing { why, at, next_at });
        if self.rows.queue().paused {
            return because(Why::QueuePaused, None);
        }
        let is_live = |(tally, count): (&Tally, &u64)| !tally.0.is_final() && *count > 0;
        if !self.rows.tallies()?.iter().any(is_live) {
            return because(Why::Empty, None);
        }
        if let Some(names) = names
            && !self.rows.any_head_named(names)?
        {
            return because(Why::OtherNames, None);
        }
        let lapse = self.rows.first_lapse(names)?;
        let due = self.rows.first_due(names)?;
        let earliest = match (lapse, due) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        match (lapse, due) {
            (Some(_), _) => because(Why::Leased, earliest),
            (None, Some(_)) => because(Why::Deferred, earliest),
            (None, None) => because(Why::Held, None),
        }
    }

    /// The ids and states of jobs.
    pub fn states(&mut self, rows: &[u64]) -> Result<Vec<(JobId, State)>> {
        rows.iter().map(|&row| Ok((self.rows.identity(row)?.id, self.rows.standing(row)?.state))).collect()
    }

    /// What a claim looked at, which has just come to `outcome` after it had `brought_in` what was due.
    pub fn trace(&mut self, brought_in: Vec<(JobId, State)>, claim: &Claim, outcome: &ClaimOutcome) -> Result<Trace> {
        let mut trace = Trace { brought_in, ..Trace::default() };
        if let ClaimOutcome::Claimed(jobs) = outcome {
            trace.taken = jobs.iter().map(|job| job.identity.id.clone()).collect();
        }
        let queue_paused = self.rows.queue().paused;
        for (row, standing) in self.rows.heads(MOST_TRACED + trace.taken.len())? {
            let identity = self.rows.identity(row)?;
            if trace.taken.contains(&identity.id) || trace.left_out.len() >= MOST_TRACED {
                continue;
            }
            let wanted = |names: &Vec<_>| identity.name.as_ref().is_some_and(|name| names.contains(name));
            let why = match standing.state {
                State::Claimed | State::Running => LeftOut::Leased,
                _ if standing.paused || standing.lane_paused || queue_paused => LeftOut::Paused,
                State::Waiting => LeftOut::Waiting,
                State::Scheduled => LeftOut::Deferred,
                State::Ready if !claim.names.as_ref().is_none_or(wanted) => LeftOut::OtherName,
                State::Ready | State::Blocked | State::Succeeded | State::Failed | State::Cancelled => {
                    LeftOut::LaterInOrder
                }
            };
            trace.left_out.push((identity.id, why));
        }
        trace.blocked = self.rows.tallies()?.get(&Tally(State::Blocked, false)).copied().unwrap_or_default();
        Ok(trace)
    }
}

impl Claim {
    /// Refuses what no ledger could answer.
    pub fn check(&self) -> Result<()> {
        if !(1..=MOST_PER_CALL).contains(&self.count) {
            let why = format!("is not between 1 and {MOST_PER_CALL}");
            return Err(Error::invalid("count", &self.count.to_string(), why));
        }
        check_lease(self.lease)
    }
}
