//! Connections: pragmas, statements, and the names that failpoints and plans know them by.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use acta_core::{Error, JobId, Result, Standing};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};

use super::codec::{self, Cell};
use super::fault::translate;
use crate::failpoint::failpoint;
use crate::turn;

/// When a commit is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Before it is acknowledged: nothing acknowledged is lost, whatever fails.
    #[default]
    Full,
    /// Soon after: a power failure may lose the last commits, whole and in order; a crashed process loses none.
    Normal,
}

/// A statement and its name: the name of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

macro_rules! statement {
    ($name:literal) => {
        $crate::sqlite::connection::Statement { name: $name, sql: include_str!(concat!("sql/", $name, ".sql")) }
    };
}
pub(super) use statement;

/// A connection that knows its ledger's name.
#[derive(Debug)]
pub(super) struct Db {
    pub(super) raw: Connection,
    place: String,
    /// The statements of [`Db::update_standings`], by the columns that they write and the number of jobs.
    updates: RefCell<HashMap<(u64, usize), String>>,
    /// The statements of [`Db::find_many`], by the number of jobs.
    finds: RefCell<HashMap<usize, String>>,
    /// The statements of [`Db::insert_many`], by the one-row statement and the number of rows.
    inserts: RefCell<HashMap<(&'static str, usize), String>>,
}

/// How many pages of 4 KiB the write-ahead log holds before they go into the file.
const WAL_PAGES: i64 = 4_000;

/// How many of `left` rows one statement inserts: few sizes, so that few statements are prepared.
pub(super) fn chunk_of(left: usize) -> usize {
    match left {
        64.. => 64,
        16.. => 16,
        4.. => 4,
        _ => 1,
    }
}

/// How many jobs one statement looks up or changes at the most.
const MOST_LISTED: usize = 512;

/// Fills a list of jobs up to a power of two by naming its last one again, which changes nothing: few sizes, so that few
/// statements are prepared.
fn padded(jobs: &[i64]) -> impl ExactSizeIterator<Item = i64> {
    let last = jobs.len().saturating_sub(1);
    (0..jobs.len().next_power_of_two()).map(move |index| jobs[index.min(last)])
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// The statement that finds so many jobs.
pub(super) fn find_of(jobs: usize) -> String {
    let one = include_str!("sql/find.sql");
    one.replace("s.job = ?1 AND s.ns = ?2", &format!("s.ns = ? AND s.job IN ({})", marks(jobs)))
}

/// The statement that writes the columns of a mask, of so many jobs.
///
/// It needs no journal of its own: an operation with a failed statement is undone as a whole.
pub(super) fn update_of(mask: u64, jobs: usize) -> String {
    let columns = (0..codec::CELLS).filter(|index| mask & 1 << index != 0);
    let assignments: Vec<String> = columns.map(|index| format!("{} = ?", codec::COLUMNS[index])).collect();
    format!("UPDATE OR FAIL acta_standing SET {} WHERE job IN ({})", assignments.join(", "), marks(jobs))
}

impl Db {
    /// Opens the file, for writing or for reading only.
    pub(super) fn open(path: &Path, synchronous: Synchronous, writes: bool) -> Result<Self> {
        let place = path.display().to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | if writes { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
        let raw = Connection::open_with_flags(path, flags).map_err(|fault| translate(&place, &fault))?;
        let db =
            Self { raw, place, updates: RefCell::default(), finds: RefCell::default(), inserts: RefCell::default() };
        let prepare = || -> rusqlite::Result<()> {
            db.raw.busy_handler(Some(turn::look_again))?;
            db.raw.set_prepared_statement_cache_capacity(256);
            // A plan does not depend on the values that are bound: no statement is prepared twice.
            db.raw.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            // Enough for what a group touches. More would cost: a commit walks the whole table of cached pages.
            db.raw.pragma_update(None, "cache_size", -4_096)?;
            db.raw.pragma_update(None, "temp_store", "memory")?;
            if writes {
                db.raw.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
                let word = match synchronous {
                    Synchronous::Full => "full",
                    Synchronous::Normal => "normal",
                };
                db.raw.pragma_update(None, "synchronous", word)?;
                // Each checkpoint waits for the disk three times; most of what is written twice in between is then written once.
                db.raw.pragma_update_and_check(None, "wal_autocheckpoint", WAL_PAGES, |_| Ok(()))?;
            } else {
                db.raw.pragma_update(None, "query_only", true)?;
            }
            Ok(())
        };
        prepare().map_err(|fault| db.fault(&fault))?;
        Ok(db)
    }

    /// The ledger's name, for errors.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn fault(&self, fault: &rusqlite::Error) -> Error {
        translate(&self.place, fault)
    }

    /// The transaction is gone.
    pub(super) fn rolled_back(&self) -> Error {
        Error::Unavailable { place: self.place.clone(), why: "SQLite rolled the transaction back".into() }
    }

    /// What is in the ledger but can't be.
    pub(super) fn unreadable(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::Unreadable { place: format!("{}: {what}", self.place), why: why.to_string() }
    }

    /// Runs a statement that changes rows; how many.
    pub(super) fn execute(&self, statement: Statement, params: impl Params) -> Result<usize> {
        let run = || self.raw.prepare_cached(statement.sql)?.execute(params);
        let changed = run().map_err(|fault| self.fault(&fault))?;
        failpoint(statement.name);
        Ok(changed)
    }

    /// The first row of a statement's answer.
    pub(super) fn first<T>(
        &self,
        statement: Statement,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let run = || self.raw.prepare_cached(statement.sql)?.query_row(params, read).optional();
        let found = run().map_err(|fault| self.fault(&fault))?;
        failpoint(statement.name);
        Ok(found)
    }

    /// All rows of a statement's answer.
    pub(super) fn all<T>(
        &self,
        statement: Statement,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let run =
            || self.raw.prepare_cached(statement.sql)?.query_map(params, read)?.collect::<rusqlite::Result<Vec<T>>>();
        run().map_err(|fault| self.fault(&fault))
    }

    /// Writes the same values into the columns of `mask` of several jobs.
    pub(super) fn update_standings(&self, mask: u64, cells: &[Cell<'_>], jobs: &[i64]) -> Result<()> {
        let mut updates = self.updates.borrow_mut();
        for listed in jobs.chunks(MOST_LISTED).map(padded) {
            let sql = updates.entry((mask, listed.len())).or_insert_with_key(|(mask, jobs)| update_of(*mask, *jobs));
            let values = cells.iter().copied().chain(listed.map(Cell::Integer));
            let run = || self.raw.prepare_cached(sql)?.execute(codec::bind(values));
            run().map_err(|fault| self.fault(&fault))?;
            failpoint("save");
        }
        Ok(())
    }

    /// Inserts several rows by the statement for one; as many as [`chunk_of`] says, all their cells in a line.
    ///
    /// It needs no journal of its own, like [`update_of`].
    pub(super) fn insert_many(&self, statement: Statement, rows: usize, cells: &[Cell<'_>]) -> Result<()> {
        let mut inserts = self.inserts.borrow_mut();
        let sql = inserts.entry((statement.name, rows)).or_insert_with(|| {
            let (head, values) = statement.sql.split_once("VALUES").unwrap_or((statement.sql, ""));
            let (_, tail) = values.split_once(')').unwrap_or_default();
            let row = format!("({})", marks(cells.len() / rows));
            format!("{head}VALUES {}{tail}", vec![row; rows].join(", "))
        });
        let run = || self.raw.prepare_cached(sql)?.execute(codec::bind(cells.iter().copied()));
        run().map_err(|fault| self.fault(&fault))?;
        failpoint(statement.name);
        Ok(())
    }

    /// Finds several jobs by their rows.
    pub(super) fn find_many(&self, ns: i64, jobs: &[i64]) -> Result<Vec<(u64, JobId, Standing)>> {
        let mut finds = self.finds.borrow_mut();
        let read = |row: &Row<'_>| {
            let (job, standing) = codec::row_and_standing(row)?;
            Ok((job, codec::id(row, 1 + codec::STANDING_WIDTH)?, standing))
        };
        let mut found = Vec::with_capacity(jobs.len());
        for listed in jobs.chunks(MOST_LISTED).map(padded) {
            let sql = finds.entry(listed.len()).or_insert_with_key(|jobs| find_of(*jobs));
            let values = std::iter::once(ns).chain(listed);
            let run = || -> rusqlite::Result<Vec<_>> {
                self.raw.prepare_cached(sql)?.query_map(codec::bind(values), read)?.collect()
            };
            found.extend(run().map_err(|fault| self.fault(&fault))?);
        }
        Ok(found)
    }

    /// Runs a fixed command: a transaction's beginning or end, a savepoint.
    pub(super) fn command(&self, sql: &'static str) -> Result<()> {
        let run = || self.raw.prepare_cached(sql)?.execute([]);
        run().map(|_| ()).map_err(|fault| self.fault(&fault))
    }

    /// Changes whenever another connection has committed.
    pub(super) fn data_version(&self) -> Result<i64> {
        let run = || self.raw.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0));
        run().map_err(|fault| self.fault(&fault))
    }
}
