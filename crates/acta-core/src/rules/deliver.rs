//! Jobs that come from an outbox: each once, and never after its delivery was closed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::enqueue::Lanes;
use super::{Rules, check_size};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::JobId;
use crate::name::Label;
use crate::policy::{MOST_ENQUEUED, TOMBSTONE};
use crate::rows::{KeyRecord, Rows};
use crate::state::State;
use crate::store::{Delivered, Deliveries, Enqueued, NewJob};

/// What stands for the job where a delivery is closed.
const CLOSED: &str = "closed";

impl Deliveries {
    /// Refuses more than one call may have.
    pub fn check(&self) -> Result<()> {
        let size = match self {
            Self::Arrive(arrivals) => arrivals.len(),
            Self::Close(keys) | Self::Reopen(keys) => keys.len(),
        };
        check_size("number of deliveries", size, MOST_ENQUEUED)
    }
}

impl Delivered {
    /// What the record of a delivery's key says: it lives as long as a tombstone from the moment of its making.
    pub fn of(record: Option<&KeyRecord>, now: Timestamp) -> Self {
        match record {
            Some(record) if record.expires_at.is_some_and(|expires| expires <= now) => Self::Open,
            Some(record) if record.state == State::Cancelled => Self::Closed,
            Some(record) => Self::Before(record.id.clone()),
            None => Self::Open,
        }
    }

    /// What became of one that has just been enqueued.
    pub fn now(answer: Enqueued) -> Self {
        Self::Now { id: answer.id, created: answer.created, state: answer.state }
    }

    /// What is answered to who says the same again.
    fn again(&self) -> Self {
        match self {
            Self::Now { id, .. } => Self::Before(id.clone()),
            known => known.clone(),
        }
    }

    /// The record that keeps this answer; none where there is nothing to keep.
    pub fn record(&self, now: Timestamp) -> Option<KeyRecord> {
        let (id, state) = match self {
            Self::Now { id, .. } => (id.clone(), State::Succeeded),
            Self::Closed => (JobId::trusted(CLOSED), State::Cancelled),
            Self::Before(_) | Self::Open => return None,
        };
        Some(KeyRecord { id, state, digest: 0, expires_at: Some(now.plus_ms(TOMBSTONE.as_millis())) })
    }
}

impl<R: Rows> Rules<'_, R> {
    /// Takes, closes or reopens deliveries.
    pub fn deliver(&mut self, deliveries: &Deliveries) -> Result<Vec<Delivered>> {
        deliveries.check()?;
        match deliveries {
            Deliveries::Arrive(arrivals) => self.arrive(arrivals),
            Deliveries::Close(keys) => keys.iter().map(|key| self.close(key)).collect(),
            Deliveries::Reopen(keys) => keys.iter().map(|key| self.reopen(key)).collect(),
        }
    }

    fn arrive(&mut self, arrivals: &[(Label, NewJob)]) -> Result<Vec<Delivered>> {
        // Of what is said twice in one call, the first one counts, here as between calls.
        let mut known: HashMap<&Label, Delivered> = HashMap::with_capacity(arrivals.len());
        let mut new = Vec::with_capacity(arrivals.len());
        for (index, (key, job)) in arrivals.iter().enumerate() {
            if let Entry::Vacant(unknown) = known.entry(key)
                && *unknown.insert(self.delivered(key)?) == Delivered::Open
            {
                new.push((index, job));
            }
        }
        self.check_all(new.into_iter())?;
        let mut lanes = Lanes::default();
        let mut answers = Vec::with_capacity(arrivals.len());
        for (key, job) in arrivals {
            let answer = match known.get(key) {
                Some(Delivered::Open) | None => {
                    let answer = Delivered::now(self.enqueue_one(job, &mut lanes)?);
                    self.keep(key, &answer)?;
                    known.insert(key, answer.again());
                    answer
                }
                Some(answer) => answer.clone(),
            };
            answers.push(answer);
        }
        self.save_lanes(&lanes)?;
        Ok(answers)
    }

    fn close(&mut self, key: &Label) -> Result<Delivered> {
        match self.delivered(key)? {
            Delivered::Open => {
                self.keep(key, &Delivered::Closed)?;
                Ok(Delivered::Closed)
            }
            known => Ok(known),
        }
    }

    fn reopen(&mut self, key: &Label) -> Result<Delivered> {
        match self.delivered(key)? {
            Delivered::Closed => {
                self.rows.remove_key(key)?;
                Ok(Delivered::Open)
            }
            known => Ok(known),
        }
    }

    fn delivered(&mut self, key: &Label) -> Result<Delivered> {
        let record = self.rows.key(key)?;
        Ok(Delivered::of(record.as_ref(), self.now))
    }

    fn keep(&mut self, key: &Label, answer: &Delivered) -> Result<()> {
        match answer.record(self.now) {
            Some(record) => self.rows.save_key(key, &record),
            None => Ok(()),
        }
    }
}
