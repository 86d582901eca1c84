//! Adding jobs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use sha2::{Digest, Sha256};

use super::Rules;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Tally;
use crate::job::{Detail, Identity, Job, KeyHold, Standing};
use crate::json::Json;
use crate::name::{Family, Label, Name};
use crate::policy::{DEFAULT_PRIORITY, Definition, MOST_ENQUEUED, check_budget, check_lease, check_priority};
use crate::rows::{KeyRecord, Lane, Rows};
use crate::state::State;
use crate::store::{Dedup, Enqueue, Enqueued, NewJob};

impl<R: Rows> Rules<'_, R> {
    /// Adds jobs, all or none.
    pub fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        check_size(jobs)?;
        self.check_all(jobs.iter().enumerate())?;
        let mut lanes = Lanes::default();
        let added = jobs.iter().map(|job| self.enqueue_one(job, &mut lanes)).collect();
        self.save_lanes(&lanes)?;
        added
    }

    /// Judges jobs of one call, each with its place there: all before the first is written, so that a refused batch leaves nothing
    /// behind.
    pub(super) fn check_all<'j>(&mut self, jobs: impl Iterator<Item = (usize, &'j NewJob)>) -> Result<()> {
        let mut names = BTreeMap::new();
        for (index, job) in jobs {
            self.check(job).and_then(|()| check_case(job, &mut names)).map_err(|fault| fault.at(index))?;
        }
        Ok(())
    }

    fn check(&mut self, job: &NewJob) -> Result<()> {
        let definition = self.definition_of(job)?;
        job.check(self.rows.queue().namespace.family(), definition.as_ref())
    }

    fn definition_of(&mut self, job: &NewJob) -> Result<Option<Definition>> {
        match &job.name {
            Some(name) => self.rows.definition(name),
            None => Ok(None),
        }
    }

    /// Adds a job; its lane is among the `lanes` of the call behind it, to be saved when all have been added.
    pub(super) fn enqueue_one(&mut self, new: &NewJob, lanes: &mut Lanes) -> Result<Enqueued> {
        if let Some(dedup) = &new.dedup
            && let Some(duplicate) = self.duplicate(dedup, &new.payload)?
        {
            return Ok(duplicate);
        }
        let definition = self.definition_of(new)?;
        let definition = definition.as_ref();
        let row = self.rows.next_number()?;
        let queue = self.rows.queue();
        let family = queue.namespace.family();
        let id = JobId::of_row(queue.namespace.name(), self.now, row, self.random);
        let lane = new.lane.clone().or_else(|| definition.and_then(|definition| definition.lane.clone()));
        let mut standing = Standing {
            state: State::Ready,
            place: row,
            priority: new.priority.or(definition.and_then(|of| of.priority)).unwrap_or(DEFAULT_PRIORITY),
            lane: None,
            lane_paused: false,
            paused: false,
            cancel_requested: false,
            attempts: 0,
            max_attempts: new
                .max_attempts
                .or(definition.and_then(|of| of.max_attempts))
                .unwrap_or(family.max_attempts()),
            retryable: new.retryable.or(definition.and_then(|of| of.retryable)).unwrap_or(true),
            fence: 0,
            lost_leases: 0,
            run_at: new.run_at,
            expires_at: new.expires_at,
            wait_until: None,
            lease_expires_at: None,
            claimed_by: None,
            claimed_at: None,
            finished_at: None,
            prune_at: None,
            retention: definition.and_then(|of| of.retention),
            business: false,
            settled: None,
            key_hold: match &new.dedup {
                None => KeyHold::None,
                Some(Dedup { while_live: false, .. }) => KeyHold::Kept,
                Some(Dedup { while_live: true, .. }) => KeyHold::WhileLive,
            },
            has_detail: false,
        };
        if let Some(name) = &lane {
            let lane = match lanes.0.entry(name.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.lane_to_join(name)?),
            };
            join(lane, &mut standing);
        }
        if standing.state == State::Ready && is_ahead(new.run_at, self.now) {
            standing.state = State::Scheduled;
        }
        if let Some(dedup) = &new.dedup {
            let record =
                KeyRecord { id: id.clone(), state: standing.state, digest: digest(&new.payload), expires_at: None };
            self.rows.save_key(&dedup.key, &record)?;
        }
        let state = standing.state;
        let identity = Identity {
            id: id.clone(),
            name: new.name.clone(),
            lane,
            key: new.key.clone(),
            dedup_key: new.dedup.as_ref().map(|dedup| dedup.key.clone()),
            payload: new.payload.clone(),
            created_at: self.now,
            backoff: new.backoff.or(definition.and_then(|of| of.backoff)),
            lease: new.lease,
            traceparent: new.traceparent.clone(),
        };
        if standing.may_be_claimed() {
            self.rows.wake();
        }
        self.rows.insert(Job { row, identity, standing, detail: Detail::default() })?;
        self.count(None, Some(Tally(state, false)));
        Ok(Enqueued { id, created: true, state, payload_differs: false })
    }

    /// Puts a job at the end of a lane.
    pub(super) fn join_lane(&mut self, name: &Label, standing: &mut Standing) -> Result<()> {
        let mut lane = self.lane_to_join(name)?;
        join(&mut lane, standing);
        self.rows.save_lane(&lane)
    }

    fn lane_to_join(&mut self, name: &Label) -> Result<Lane> {
        match self.rows.lane(name)? {
            Some(lane) => Ok(lane),
            None => self.rows.add_lane(name),
        }
    }

    /// Saves the lanes that jobs of one call have joined.
    pub(super) fn save_lanes(&mut self, lanes: &Lanes) -> Result<()> {
        lanes.0.values().try_for_each(|lane| self.rows.save_lane(lane))
    }

    /// The answer to a job whose key is taken.
    fn duplicate(&mut self, dedup: &Dedup, payload: &Json) -> Result<Option<Enqueued>> {
        let Some(record) = self.rows.key(&dedup.key)? else { return Ok(None) };
        if record.expires_at.is_some_and(|expires| expires <= self.now) {
            return Ok(None);
        }
        let state = match record.expires_at {
            Some(_) => record.state,
            None => self.find(&record.id)?.1.state,
        };
        let payload_differs = record.digest != digest(payload);
        Ok(Some(Enqueued { id: record.id, created: false, state, payload_differs }))
    }
}

/// The lanes that jobs of one call join.
#[derive(Debug, Default)]
pub(super) struct Lanes(BTreeMap<Label, Lane>);

/// A job joins a lane: its head where nobody is alive in it, blocked otherwise.
fn join(lane: &mut Lane, standing: &mut Standing) {
    standing.lane = Some(lane.number);
    if lane.live > 0 {
        standing.state = State::Blocked;
    } else {
        standing.lane_paused = lane.paused;
    }
    lane.live += 1;
}

fn check_size(jobs: &[NewJob]) -> Result<()> {
    super::check_size("number of jobs", jobs.len(), MOST_ENQUEUED)
}

impl Enqueue {
    /// Refuses more than one call may add.
    pub fn check(&self) -> Result<()> {
        check_size(&self.jobs)
    }
}

impl NewJob {
    /// Refuses what no ledger accepts in a namespace of this family; `definition` is what it knows under the job's name.
    pub fn check(&self, family: Family, definition: Option<&Definition>) -> Result<()> {
        if let Some(priority) = self.priority.or(definition.and_then(|definition| definition.priority)) {
            check_priority(family, priority)?;
        }
        check_budget(self.max_attempts)?;
        check_lease(self.lease)
    }
}

/// Two names of one batch may not differ by case alone, either.
fn check_case<'j>(job: &'j NewJob, names: &mut BTreeMap<String, &'j Name>) -> Result<()> {
    let Some(name) = &job.name else { return Ok(()) };
    match names.insert(name.as_str().to_ascii_lowercase(), name) {
        Some(other) if other != name => {
            Err(Error::CaseDiffers { what: "name", given: name.to_string(), existing: other.to_string() })
        }
        _ => Ok(()),
    }
}

fn is_ahead(instant: Option<Timestamp>, now: Timestamp) -> bool {
    instant.is_some_and(|at| at > now)
}

/// Eight bytes of the SHA-256 of a text: equal for equal texts on every substrate and release.
pub fn digest(json: &Json) -> i64 {
    digest_text(json.as_str())
}

pub(crate) fn digest_text(text: &str) -> i64 {
    let hash = Sha256::digest(text.as_bytes());
    let mut first = [0_u8; 8];
    first.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(first)
}
