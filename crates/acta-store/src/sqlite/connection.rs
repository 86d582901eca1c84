//! Connections: pragmas, statements, and the names that failpoints and plans know them by.

use std::path::Path;

use acta_core::{Error, Result};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};

use super::fault::translate;
use super::turn;
use crate::failpoint::failpoint;

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
}

impl Db {
    /// Opens the file, for writing or for reading only.
    pub(super) fn open(path: &Path, synchronous: Synchronous, writes: bool) -> Result<Self> {
        let place = path.display().to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | if writes { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
        let raw = Connection::open_with_flags(path, flags).map_err(|fault| translate(&place, &fault))?;
        let db = Self { raw, place };
        let prepare = || -> rusqlite::Result<()> {
            db.raw.busy_handler(Some(turn::look_again))?;
            db.raw.set_prepared_statement_cache_capacity(128);
            db.raw.pragma_update(None, "cache_size", -65_536)?;
            db.raw.pragma_update(None, "temp_store", "memory")?;
            if writes {
                db.raw.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
                let word = match synchronous {
                    Synchronous::Full => "full",
                    Synchronous::Normal => "normal",
                };
                db.raw.pragma_update(None, "synchronous", word)?;
            } else {
                db.raw.pragma_update(None, "query_only", true)?;
            }
            Ok(())
        };
        prepare().map_err(|fault| db.fault(&fault))?;
        Ok(db)
    }

    pub(super) fn fault(&self, fault: &rusqlite::Error) -> Error {
        translate(&self.place, fault)
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
        run().map_err(|fault| self.fault(&fault))
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
