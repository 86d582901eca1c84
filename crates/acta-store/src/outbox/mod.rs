//! Outboxes in applications' own databases: the rows that a relay carries into the ledger.
//!
//! What a relay does with rows is decided in [`acta_core::relay`]; here they are found and let go. Rows are found by their status
//! and never by a cursor, so that one whose transaction commits late is late, and not lost.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stage;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use acta_core::relay::{Held, MOST_TAKEN, Row, Source, Standing};
use acta_core::{Error, Result, Timestamp};

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

/// How many deferred rows are let go at once.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
const RELEASED: i64 = 5_000;
/// How often deferred rows are looked for, and how often lines whose first row was deleted by hand.
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

/// Rows that were looked at.
#[derive(Debug, Default)]
struct Seen {
    /// What may be delivered.
    free: Vec<Row>,
    /// What stands behind a row that waits.
    behind: Vec<Row>,
}

impl Seen {
    /// Each row with the number of the first one of its line that is held.
    fn of(rows: impl IntoIterator<Item = (Row, Option<i64>)>) -> Self {
        let mut seen = Self::default();
        for (mut row, first_held) in rows {
            if first_held.is_some_and(|held| held < row.id) {
                seen.behind.push(row);
            } else {
                row.has_behind = first_held.is_some();
                seen.free.push(row);
            }
        }
        seen
    }
}

fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

/// The lines of these rows, each once.
fn lines<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Vec<(&'r str, &'r str)> {
    let lines: BTreeSet<_> = rows.into_iter().filter_map(Row::line).collect();
    lines.into_iter().collect()
}

/// The lines that go on when these rows are gone.
fn lines_behind(rows: &[Row]) -> Vec<(&str, &str)> {
    lines(rows.iter().filter(|row| row.has_behind))
}

/// How many rows of each line come when what was before them is gone: together no more than one look can take.
fn coming(lines: usize) -> i64 {
    i64::try_from((MOST_TAKEN / lines.max(1)).max(1)).unwrap_or(1)
}

/// What the source says of who has it, if that is this relay.
fn held(holder: &Holder, relay: &str) -> Option<Held> {
    let is_ours = holder.relay.as_deref() == Some(relay);
    let since = holder.since_ms.filter(|_| is_ours)?;
    Some(Held { since: Timestamp::from_millis(since), now: Timestamp::from_millis(holder.now_ms) })
}

/// Who has a source.
#[derive(Debug)]
struct Holder {
    relay: Option<String>,
    until_ms: Option<i64>,
    since_ms: Option<i64>,
    now_ms: i64,
}

impl Holder {
    /// Another relay, whose time is not over.
    #[cfg(feature = "sqlite")]
    fn is_another(&self, relay: &str) -> bool {
        self.relay.as_deref().is_some_and(|holder| holder != relay)
            && self.until_ms.is_some_and(|until| until > self.now_ms)
    }

    /// How the outbox stands, before its rows are counted.
    fn standing(self) -> Standing {
        let now = Timestamp::from_millis(self.now_ms);
        let until = self.until_ms.map(Timestamp::from_millis).filter(|until| *until > now);
        Standing { now, relay: self.relay.zip(until), ..Standing::default() }
    }
}

/// Adds what is known of one status to how an outbox stands.
fn tell(standing: &mut Standing, status: i64, count: i64, oldest_ms: Option<i64>) {
    let count = count.unsigned_abs();
    let counter = match status {
        0 => &mut standing.pending,
        1 => &mut standing.deferred,
        2 => &mut standing.parked,
        _ => &mut standing.quarantined,
    };
    *counter = count;
    if status != 3 {
        let oldest = oldest_ms.map(Timestamp::from_millis);
        standing.oldest = standing.oldest.into_iter().chain(oldest).min();
    }
}
