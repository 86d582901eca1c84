//! Outboxes in applications' own databases: the rows that a relay carries into the ledger.
//!
//! What a relay does with rows is decided in [`acta_core::relay`]; here they are found, held and let go. Rows are found by their status
//! and never by a cursor, so that one whose transaction commits late is late, and not lost.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stage;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use acta_core::relay::{MOST_TAKEN, Row, Source};
use acta_core::{Error, Result};

#[cfg(feature = "mysql")]
pub use mysql::MysqlOutbox;
#[cfg(feature = "postgres")]
pub use postgres::PostgresOutbox;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteOutbox;
#[cfg(feature = "rusqlite")]
pub use stage::stage_blocking;
pub use stage::{Sealed, Stager};
pub use table::{Dialect, TableName};

/// How many lapsed and deferred rows are let go at once.
const RELEASED: i64 = 5_000;
/// How often lapsed and deferred rows are looked for, and how often lines whose first row was deleted by hand.
const RELEASE_EVERY: std::time::Duration = std::time::Duration::from_millis(250);
const SWEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(5);
/// How many lines one sweep looks at.
const SWEPT: u16 = 500;

/// The outbox in the database at `address`: `postgres://…`, `mysql://…`, `mariadb://…`, or `sqlite:<file>`, which must be there.
pub fn open(address: &str, table: &TableName) -> Result<Arc<dyn Source>> {
    #[cfg(feature = "sqlite")]
    if let Some(path) = address.strip_prefix("sqlite:") {
        return Ok(Arc::new(SqliteOutbox::new(path.into(), table)));
    }
    #[cfg(feature = "postgres")]
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        return Ok(Arc::new(PostgresOutbox::new(address, table)?));
    }
    #[cfg(feature = "mysql")]
    if address.starts_with("mysql://") || address.starts_with("mariadb://") {
        return Ok(Arc::new(MysqlOutbox::new(address, table)?));
    }
    Err(Error::invalid("source", address, "is not postgres://…, mysql://… or sqlite:<file>"))
}

/// Which of these things are due now and then.
#[derive(Debug, Default)]
struct Rounds {
    released: Option<tokio::time::Instant>,
    swept: Option<tokio::time::Instant>,
    /// The line at which the last sweep ended.
    cursor: (String, String),
    /// All lines were swept once.
    was_around: bool,
}

impl Rounds {
    fn is_release_due(&mut self) -> bool {
        is_due(&mut self.released, RELEASE_EVERY)
    }

    /// At first one sweep follows upon the other, until all lines have been looked at.
    fn is_sweep_due(&mut self) -> bool {
        is_due(&mut self.swept, SWEEP_EVERY) || !self.was_around
    }

    /// So many lines were swept, the last of which is this one.
    fn has_swept(&mut self, count: usize, last: Option<(String, String)>) {
        let last = last.filter(|_| count >= usize::from(SWEPT));
        self.was_around |= last.is_none();
        self.cursor = last.unwrap_or_default();
    }
}

fn is_due(last: &mut Option<tokio::time::Instant>, pause: std::time::Duration) -> bool {
    let now = tokio::time::Instant::now();
    if last.is_some_and(|last| now.duration_since(last) < pause) {
        return false;
    }
    *last = Some(now);
    true
}

/// A row that may be taken.
#[derive(Debug)]
struct Chosen {
    id: i64,
    line: Option<(String, String)>,
    is_behind: bool,
}

/// The lines of these rows, each once.
fn lines<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Vec<(&'r str, &'r str)> {
    let lines: BTreeSet<_> = rows.into_iter().filter_map(Row::line).collect();
    lines.into_iter().collect()
}

/// What of the chosen rows is to be taken, and what is to be parked.
fn parted(chosen: &[Chosen]) -> (Vec<i64>, Vec<i64>) {
    let (behind, free): (Vec<&Chosen>, Vec<&Chosen>) = chosen.iter().partition(|row| row.is_behind);
    (free.into_iter().map(|row| row.id).collect(), behind.into_iter().map(|row| row.id).collect())
}

/// The lines of the chosen rows that stand behind others.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn lines_behind(chosen: &[Chosen]) -> Vec<(&str, &str)> {
    let behind = chosen.iter().filter(|row| row.is_behind).filter_map(|row| row.line.as_ref());
    let lines: BTreeSet<_> = behind.map(|(namespace, lane)| (namespace.as_str(), lane.as_str())).collect();
    lines.into_iter().collect()
}

/// How many rows of each line come when what was before them is gone: together no more than one look can take.
fn coming(lines: usize) -> i64 {
    i64::try_from((MOST_TAKEN / lines.max(1)).max(1)).unwrap_or(1)
}

/// The runs among the rows that were got, in their order, and what is to be given back.
fn kept(chosen: &[Chosen], got: Vec<Row>) -> (Vec<Row>, Vec<i64>) {
    let ids = got.iter().map(|row| row.id).collect();
    let wanted = chosen.iter().filter(|row| !row.is_behind);
    let line = |row: &Chosen| row.line.as_ref().map(|(namespace, lane)| (namespace.clone(), lane.clone()));
    let lines: Vec<_> = wanted.map(|row| (row.id, line(row))).collect();
    let wanted = lines
        .iter()
        .map(|(id, line)| (*id, line.as_ref().map(|(namespace, lane)| (namespace.as_str(), lane.as_str()))));
    let run = acta_core::relay::runs(wanted, &ids);
    let mut rows: BTreeMap<i64, Row> = got.into_iter().map(|row| (row.id, row)).collect();
    (run.kept.iter().filter_map(|id| rows.remove(id)).collect(), run.given_back)
}

/// Adds what is known of one status to how an outbox stands.
fn tell(standing: &mut acta_core::relay::Standing, status: i64, count: i64, oldest_ms: Option<i64>) {
    let count = count.unsigned_abs();
    let counter = match status {
        0 => &mut standing.pending,
        1 => &mut standing.taken,
        2 => &mut standing.parked,
        3 => &mut standing.quarantined,
        _ => &mut standing.deferred,
    };
    *counter = count;
    if status != 3 {
        let oldest = oldest_ms.map(acta_core::Timestamp::from_millis);
        standing.oldest = standing.oldest.into_iter().chain(oldest).min();
    }
}
