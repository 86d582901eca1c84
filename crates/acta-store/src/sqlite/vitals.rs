//! Workers and minutes as rows.

use acta_core::vitals::{Card, Flow, Minute, Registered};
use acta_core::{Label, Result, Timestamp};
use rusqlite::Row;

use super::codec::{self, Cell};
use super::connection::statement;
use super::rows::SqlRows;
use super::session::NamespaceNumber;

/// One minute.
const MINUTE_MS: i64 = 60_000;

/// What `add_minute` takes.
pub(super) fn flow_cells(ns: NamespaceNumber, minute: Timestamp, flow: Flow) -> [Cell<'static>; 7] {
    let Flow { added, claimed, succeeded, failed, cancelled } = flow;
    let [added, claimed, succeeded, failed, cancelled] =
        [added, claimed, succeeded, failed, cancelled].map(u64::cast_signed);
    [ns, minute.as_millis() / MINUTE_MS, added, claimed, succeeded, failed, cancelled].map(Cell::Integer)
}

fn minute(row: &Row<'_>) -> rusqlite::Result<Minute> {
    let flow = Flow {
        added: codec::number(row, 1)?,
        claimed: codec::number(row, 2)?,
        succeeded: codec::number(row, 3)?,
        failed: codec::number(row, 4)?,
        cancelled: codec::number(row, 5)?,
    };
    Ok(Minute { at: Timestamp::from_millis(row.get::<_, i64>(0)?.saturating_mul(MINUTE_MS)), flow })
}

fn worker(row: &Row<'_>) -> rusqlite::Result<Registered> {
    let label = |column| Ok::<_, rusqlite::Error>(Label::trusted(row.get::<_, String>(column)?));
    let card = Card {
        id: label(0)?,
        robot: label(1)?,
        host: label(2)?,
        pid: row.get(3)?,
        version: label(4)?,
        concurrency: row.get(5)?,
        running: row.get(6)?,
    };
    let instant = |column| Ok::<_, rusqlite::Error>(Timestamp::from_millis(row.get(column)?));
    Ok(Registered { card, started_at: instant(7)?, seen_at: instant(8)? })
}

impl SqlRows<'_, '_> {
    pub(super) fn kept_minutes(&mut self, from: Timestamp) -> Result<Vec<Minute>> {
        self.session.db.all(statement!("minutes"), (self.ns, from.as_millis() / MINUTE_MS), minute)
    }

    pub(super) fn forget_minutes(&mut self, before: Timestamp, most: i64) -> Result<()> {
        self.session.db.execute(statement!("remove_minutes"), (self.ns, before.as_millis() / MINUTE_MS, most))?;
        Ok(())
    }

    pub(super) fn kept_worker(&mut self, id: &Label) -> Result<Option<Registered>> {
        self.session.db.first(statement!("worker"), (self.ns, id.as_str()), worker)
    }

    pub(super) fn kept_workers(&mut self, most: i64) -> Result<Vec<Registered>> {
        self.session.db.all(statement!("workers"), (self.ns, most), worker)
    }

    pub(super) fn keep_worker(&mut self, worker: &Registered) -> Result<()> {
        let Registered { card, started_at, seen_at } = worker;
        self.session.db.execute(
            statement!("save_worker"),
            (
                self.ns,
                card.id.as_str(),
                card.robot.as_str(),
                card.host.as_str(),
                card.pid,
                card.version.as_str(),
                card.concurrency,
                card.running,
                started_at.as_millis(),
                seen_at.as_millis(),
            ),
        )?;
        Ok(())
    }

    pub(super) fn forget_worker(&mut self, id: &Label) -> Result<()> {
        self.session.db.execute(statement!("remove_worker"), (self.ns, id.as_str()))?;
        Ok(())
    }

    pub(super) fn forget_workers(&mut self, before: Timestamp, most: i64) -> Result<()> {
        self.session.db.execute(statement!("remove_workers"), (self.ns, before.as_millis(), most))?;
        Ok(())
    }
}
