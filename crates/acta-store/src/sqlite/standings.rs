//! The standings of one namespace that were read and changed.
//!
//! Nobody else writes within a transaction, and what the last one left is still true in the next as long as no other
//! process has committed: a job that was claimed here is settled without being read again. What is changed is written
//! when the operation next looks into an index, or ends. Jobs that changed in the same way, as those of a claim or a
//! wave mostly do, are then written by one statement.

use std::collections::{BTreeMap, HashMap};

use acta_core::{Identity, Job, JobId, Label, Result, Standing};

use super::codec::{self, CELLS, Cell};
use super::connection::{Db, chunk_of, statement};
use super::session::NamespaceNumber;

/// A standing as it was read, and as it is now.
#[derive(Debug)]
struct Kept {
    id: Option<JobId>,
    read: Standing,
    changed: Option<Standing>,
}

/// How many jobs are remembered from one operation to the next.
const MOST_KEPT: usize = 4_096;

/// The standings of one namespace, by row.
#[derive(Debug, Default)]
pub(super) struct Standings {
    ns: NamespaceNumber,
    kept: HashMap<u64, Kept>,
    dirty: Vec<u64>,
    ended: Vec<u64>,
    added: Vec<Added>,
}

/// A job to insert, and what its row says besides.
#[derive(Debug)]
pub(super) struct Added {
    row: u64,
    ns: NamespaceNumber,
    name: i64,
    identity: Identity,
    backoff: Option<String>,
    standing: Standing,
}

impl Added {
    pub(super) fn new(job: Job, ns: NamespaceNumber, name: i64) -> Self {
        let Job { row, identity, standing, .. } = job;
        let backoff = identity.backoff.as_ref().and_then(|backoff| serde_json::to_string(backoff).ok());
        Self { row, ns, name, identity, backoff, standing }
    }

    /// What `insert_job` takes.
    pub(super) fn identity_cells(&self) -> [Cell<'_>; 13] {
        let Added { row, ns, identity, backoff, .. } = self;
        [
            Cell::Integer(row.cast_signed()),
            Cell::Text(identity.id.as_str()),
            identity.name.as_ref().map_or(Cell::Null, |name| Cell::Text(name.as_str())),
            text(identity.lane.as_ref()),
            text(identity.key.as_ref()),
            text(identity.dedup_key.as_ref()),
            Cell::Integer(identity.created_at.as_millis()),
            backoff.as_deref().map_or(Cell::Null, Cell::Text),
            identity.lease.map_or(Cell::Null, |lease| Cell::Integer(lease.as_millis())),
            identity.traceparent.as_ref().map_or(Cell::Null, |parent| Cell::Text(parent.as_str())),
            Cell::Integer(i64::from(identity.id.row() != Some(*row))),
            Cell::Integer(*ns),
            Cell::Text(identity.payload.as_str()),
        ]
    }

    /// What `insert_standing` takes.
    pub(super) fn standing_cells(&self) -> [Cell<'_>; 17] {
        let all = codec::standing_cells(&self.standing);
        let mut cells = [Cell::Null; 17];
        let (of_standing, of_row) = cells.split_at_mut(codec::NEW.len());
        of_standing.copy_from_slice(&codec::NEW.map(|index| all[index]));
        of_row.copy_from_slice(&[self.row.cast_signed(), self.ns, self.name].map(Cell::Integer));
        cells
    }
}

/// What a change writes: the columns, and the values in them.
type Change<'s> = (u64, Vec<Cell<'s>>);

impl Standings {
    /// To be called before each operation, with its namespace.
    pub(super) fn turn_to(&mut self, ns: NamespaceNumber) {
        for row in self.ended.drain(..) {
            self.kept.remove(&row);
        }
        if self.ns != ns || self.kept.len() > MOST_KEPT {
            *self = Self { ns, ..Self::default() };
        }
    }

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

    /// Keeps a job to insert; `name` is the number of its definition's name.
    pub(super) fn add(&mut self, job: Job, ns: NamespaceNumber, name: i64) {
        self.added.push(Added::new(job, ns, name));
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
        self.insert(db)?;
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
            if *mask != 0 {
                db.update_standings(*mask, cells, rows)?;
            }
        }
        drop(alike);
        for row in self.dirty.drain(..) {
            if let Some(kept) = self.kept.get_mut(&row)
                && let Some(changed) = kept.changed.take()
            {
                if changed.state.is_final() {
                    self.ended.push(row);
                }
                kept.read = changed;
            }
        }
        Ok(())
    }
}

impl Standings {
    /// Inserts what was added.
    pub(super) fn insert(&mut self, db: &Db) -> Result<()> {
        let mut rest = &self.added[..];
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(chunk_of(rest.len()));
            let mut cells = Vec::with_capacity(chunk.len() * 28);
            for added in chunk {
                cells.extend(added.identity_cells());
            }
            db.insert_many(statement!("insert_job"), chunk.len(), &cells)?;
            cells.clear();
            for added in chunk {
                cells.extend(added.standing_cells());
            }
            db.insert_many(statement!("insert_standing"), chunk.len(), &cells)?;
            rest = behind;
        }
        self.added.clear();
        Ok(())
    }
}

/// Inserts a job of any age, as it comes with a copy.
pub(super) fn insert_whole(db: &Db, job: Job, ns: NamespaceNumber, name: i64) -> Result<()> {
    let added = Added::new(job, ns, name);
    db.insert_many(statement!("insert_job"), 1, &added.identity_cells())?;
    let mut cells = codec::standing_cells(&added.standing).to_vec();
    cells.extend([added.row.cast_signed(), ns, name].map(Cell::Integer));
    db.execute(statement!("import_standing"), codec::bind(cells))?;
    Ok(())
}

fn text(label: Option<&Label>) -> Cell<'_> {
    label.map_or(Cell::Null, |label| Cell::Text(label.as_str()))
}

/// The columns that differ, and their new values: an index over others is not touched.
fn change_between<'s>(before: &Standing, after: &'s Standing) -> Change<'s> {
    let (old, new) = (codec::standing_cells(before), codec::standing_cells(after));
    let mut mask = 0;
    let mut cells = Vec::with_capacity(CELLS);
    for index in 0..CELLS {
        if old[index] != new[index] {
            mask |= 1 << index;
            cells.push(new[index]);
        }
    }
    (mask, cells)
}
