//! Where the rows stand that this process has claimed.
//!
//! A row that is still where its claim had left it has not changed since. So a settle that shows the place spares the database a look
//! at what it settles, and the way through an index to it. Nothing depends on it: a place that is not known, or not true any more,
//! only sends the settle the longer way.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acta_core::store::{Outcome, Wave};
use acta_core::{JobId, Result};
use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::codec;

/// How many places are kept at the most. What is forgotten is looked up.
const MOST: usize = 100_000;

/// A row's block, and its number in there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tid([u8; 6]);

type Fault = Box<dyn std::error::Error + Sync + Send>;

impl<'a> FromSql<'a> for Tid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, Fault> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(TID);
}

impl ToSql for Tid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Fault> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(TID);
    to_sql_checked!();
}

/// A claimed job's row, and the lane that it will leave.
#[derive(Debug)]
struct Place {
    at: Tid,
    lane: Option<i64>,
}

/// Places of jobs that were claimed and not settled since.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<JobId, Place>>);

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Place>> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the places that a claim's answer tells.
    pub(super) fn keep(&self, rows: &[Row]) -> Result<()> {
        let mut places = self.lock();
        if places.len() + rows.len() > MOST {
            places.clear();
        }
        for row in rows {
            if let Some((id, at, lane)) = codec::place(row)? {
                places.insert(id, Place { at, lane });
            }
        }
        Ok(())
    }

    /// These jobs' rows are about to change.
    pub(super) fn forget<'j>(&self, jobs: impl Iterator<Item = &'j JobId>) {
        let mut places = self.lock();
        for job in jobs {
            places.remove(job);
        }
    }

    /// The places of all jobs of a wave of plain successes, and the lanes that they leave; `None` where it is another wave.
    pub(super) fn take(&self, wave: &Wave) -> Option<(Vec<Tid>, Option<Vec<i64>>)> {
        let mut places = self.lock();
        let mut all = true;
        let (mut at, mut lanes) = (Vec::with_capacity(wave.settlements.len()), Vec::new());
        for settlement in &wave.settlements {
            let is_plain = settlement.outcome == Outcome::Succeeded(None) && settlement.claimant.robot.is_none();
            match places.remove(&settlement.id) {
                Some(place) if is_plain => {
                    at.push(place.at);
                    lanes.extend(place.lane);
                }
                _ => all = false,
            }
        }
        all.then(|| (at, (!lanes.is_empty()).then_some(lanes)))
    }
}
