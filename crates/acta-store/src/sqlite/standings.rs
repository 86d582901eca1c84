//! The standings that one operation has read and changed.
//!
//! Within its transaction nobody else writes, so what was read stays true; and what is changed is written when the
//! operation next looks into an index, or ends. Jobs that changed in the same way, as those of a claim or a wave mostly
//! do, are then written by one statement.

use std::collections::{BTreeMap, HashMap};

use acta_core::{JobId, Result, Standing};

use super::codec::{self, CELLS, Cell};
use super::connection::{Db, chunk_of};

/// A standing as it was read, and as it is now.
#[derive(Debug)]
struct Kept {
    id: Option<JobId>,
    read: Standing,
    changed: Option<Standing>,
}

/// The standings of one operation, by row.
#[derive(Debug, Default)]
pub(super) struct Standings {
    kept: HashMap<u64, Kept>,
    dirty: Vec<u64>,
}

/// What a change writes: the columns, and the values in them.
type Change<'s> = (u64, Vec<Cell<'s>>);

impl Standings {
    /// The standing of the job in `row`, if it is known.
    pub(super) fn get(&self, row: u64) -> Option<&Standing> {
        self.kept.get(&row).map(|kept| kept.changed.as_ref().unwrap_or(&kept.read))
    }

    /// The same, if the job is known to have this id.
    pub(super) fn get_by_id(&self, row: u64, id: &JobId) -> Option<&Standing> {
        self.kept.get(&row).filter(|kept| kept.id.as_ref() == Some(id))?;
        self.get(row)
    }

    /// Remembers what was read; what is known already stays.
    pub(super) fn remember(&mut self, row: u64, id: Option<&JobId>, standing: &Standing) {
        let kept = self.kept.entry(row).or_insert_with(|| Kept { id: None, read: standing.clone(), changed: None });
        if kept.id.is_none() {
            kept.id = id.cloned();
        }
    }

    /// Remembers a change; false if the job was never read.
    pub(super) fn change(&mut self, row: u64, standing: &Standing) -> bool {
        let Some(kept) = self.kept.get_mut(&row) else { return false };
        if kept.changed.is_none() {
            self.dirty.push(row);
        }
        kept.changed = Some(standing.clone());
        true
    }

    /// Forgets a job.
    pub(super) fn forget(&mut self, row: u64) {
        self.kept.remove(&row);
        self.dirty.retain(|dirty| *dirty != row);
    }

    /// Writes all changes.
    pub(super) fn flush(&mut self, db: &Db) -> Result<()> {
        if self.dirty.is_empty() {
            return Ok(());
        }
        let mut alike: BTreeMap<Change<'_>, Vec<i64>> = BTreeMap::new();
        for row in &self.dirty {
            if let Some(Kept { read, changed: Some(changed), .. }) = self.kept.get(row) {
                alike.entry(change_between(read, changed)).or_default().push(row.cast_signed());
            }
        }
        for ((mask, cells), rows) in &alike {
            let mut rest = &rows[..];
            while !rest.is_empty() && *mask != 0 {
                let (chunk, behind) = rest.split_at(chunk_of(rest.len()));
                db.update_standings(*mask, cells, chunk)?;
                rest = behind;
            }
        }
        drop(alike);
        for row in self.dirty.drain(..) {
            if let Some(kept) = self.kept.get_mut(&row)
                && let Some(changed) = kept.changed.take()
            {
                kept.read = changed;
            }
        }
        Ok(())
    }
}

/// The columns that differ, and their new values: an index over others is not touched.
fn change_between<'s>(before: &Standing, after: &'s Standing) -> Change<'s> {
    let (old, new) = (codec::standing_cells(before), codec::standing_cells(after));
    let mut mask = 0;
    let mut cells = Vec::new();
    for index in 0..CELLS {
        if old[index] != new[index] {
            mask |= 1 << index;
            cells.push(new[index]);
        }
    }
    (mask, cells)
}
