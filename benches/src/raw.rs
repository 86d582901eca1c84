//! The limit: the same durable transitions by hand, prepared statements on a minimal table, nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use acta_store::sqlite::Synchronous;
use anyhow::Result;
use rusqlite::Connection;

/// Makes the table: a state, and what a claim and a settle have to leave behind.
pub const TABLE: &str = "CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, fence INTEGER NOT NULL,
    claimed_by TEXT, claimed_at INTEGER, lease_expires_at INTEGER, finished_at INTEGER, payload TEXT NOT NULL);
CREATE INDEX ready ON job (id) WHERE state = 0";
/// Adds a job.
pub const INSERT: &str = "INSERT INTO job (state, fence, payload) VALUES (0, 0, ?1)";
/// Claims.
pub const CLAIM: &str = "UPDATE job SET state = 1, fence = fence + 1, claimed_by = ?2, claimed_at = ?3,
    lease_expires_at = ?4
WHERE id IN (SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT ?1) RETURNING id, fence, payload";
/// Settles.
pub const SETTLE: &str = "UPDATE job SET state = 2, finished_at = ?3 WHERE id = ?1 AND fence = ?2 AND state = 1";

/// Claims by the state alone: nobody could tell who holds the job, or until when.
pub const CLAIM_STATE: &str = "UPDATE job SET state = 1
WHERE id IN (SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT ?1) RETURNING id, fence, payload";
/// Settles by the state alone.
pub const SETTLE_STATE: &str = "UPDATE job SET state = 2 WHERE id = ?1 AND state = 1";

/// What a raw claim and settle write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Holder, instants, lease and fence, as the ledger's do.
    Whole,
    /// The state, and nothing else: the fastest that can be.
    StateAlone,
}

/// Some instant, in milliseconds.
const NOW: i64 = 1_791_018_720_000;

/// A table of one's own.
pub struct Raw {
    db: Connection,
}

impl Raw {
    /// An empty table in a new file.
    pub fn open(path: &Path, synchronous: Synchronous) -> Result<Self> {
        let db = Connection::open(path)?;
        db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        db.pragma_update(None, "synchronous", if synchronous == Synchronous::Full { "full" } else { "normal" })?;
        db.pragma_update(None, "cache_size", -4_096)?;
        db.execute_batch(TABLE)?;
        Ok(Self { db })
    }

    /// Adds `total` jobs in transactions of `batch`; how long it took.
    pub fn insert(&self, total: usize, batch: usize, payload: &str) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..total / batch {
            self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let mut insert = self.db.prepare_cached(INSERT)?;
            for _ in 0..batch {
                insert.execute([payload])?;
            }
            self.db.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(start.elapsed())
    }

    /// Claims and settles all jobs, `batch` a transaction; how long it took.
    pub fn drain(&self, batch: usize, writes: Writes) -> Result<Duration> {
        let start = Instant::now();
        loop {
            self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let claimed: Vec<(i64, i64, String)> = {
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                let count = i64::try_from(batch)?;
                if writes == Writes::Whole {
                    let mut claim = self.db.prepare_cached(CLAIM)?;
                    let rows = claim.query_map((count, "bench", NOW, NOW + 600_000), read)?;
                    rows.collect::<rusqlite::Result<_>>()?
                } else {
                    let mut claim = self.db.prepare_cached(CLAIM_STATE)?;
                    let rows = claim.query_map([count], read)?;
                    rows.collect::<rusqlite::Result<_>>()?
                }
            };
            self.db.prepare_cached("COMMIT")?.execute([])?;
            if claimed.is_empty() {
                return Ok(start.elapsed());
            }
            self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let mut settle = self.db.prepare_cached(if writes == Writes::Whole { SETTLE } else { SETTLE_STATE })?;
            for (id, fence, _) in &claimed {
                if writes == Writes::Whole {
                    settle.execute((id, fence, NOW))?;
                } else {
                    settle.execute([id])?;
                }
            }
            self.db.prepare_cached("COMMIT")?.execute([])?;
        }
    }
}
