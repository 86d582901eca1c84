//! Workers and minutes as rows.

use acta_core::vitals::{Card, Flow, Minute, Presence, Registered};
use acta_core::{Label, Result, Timestamp};
use tokio_postgres::Row;

use super::codec::{self, get};
use super::rows::{PgRows, most};
use super::session::{params, statement};

/// One minute.
const MINUTE_MS: i64 = 60_000;

/// What a function of the database is told of a worker.
pub(super) fn told(worker: &Presence) -> serde_json::Result<String> {
    match worker {
        Presence::Here(card) => serde_json::to_string(card),
        Presence::Gone(id) => Ok(serde_json::json!({ "gone": id }).to_string()),
    }
}

fn minute(row: &Row) -> Result<Minute> {
    let flow = Flow {
        added: codec::number(row, 1)?,
        claimed: codec::number(row, 2)?,
        succeeded: codec::number(row, 3)?,
        failed: codec::number(row, 4)?,
        cancelled: codec::number(row, 5)?,
    };
    Ok(Minute { at: Timestamp::from_millis(get::<i64>(row, 0)?.saturating_mul(MINUTE_MS)), flow })
}

fn worker(row: &Row) -> Result<Registered> {
    let label = |column| Ok::<_, acta_core::Error>(Label::trusted(get::<&str>(row, column)?));
    let number = |column| Ok::<_, acta_core::Error>(u32::try_from(get::<i64>(row, column)?).unwrap_or_default());
    let card = Card {
        id: label(0)?,
        robot: label(1)?,
        host: label(2)?,
        pid: number(3)?,
        version: label(4)?,
        concurrency: number(5)?,
        running: number(6)?,
    };
    let instant = |column| Ok::<_, acta_core::Error>(Timestamp::from_millis(get(row, column)?));
    Ok(Registered { card, started_at: instant(7)?, seen_at: instant(8)? })
}

impl PgRows<'_> {
    /// What is folded, and what has changed since.
    pub(super) fn kept_minutes(&mut self, from: Timestamp) -> Result<Vec<Minute>> {
        let params = params![self.ns => INT4, from.as_millis() / MINUTE_MS => INT8];
        self.session.all(statement!("minutes"), params)?.iter().map(minute).collect()
    }

    pub(super) fn forget_minutes(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        let params = params![self.ns => INT4, before.as_millis() / MINUTE_MS => INT8, most(limit) => INT8];
        self.session.execute(statement!("remove_minutes"), params)?;
        Ok(())
    }

    pub(super) fn kept_worker(&mut self, id: &Label) -> Result<Option<Registered>> {
        let params = params![self.ns => INT4, id.as_str() => TEXT];
        self.session.first(statement!("worker"), params)?.as_ref().map(worker).transpose()
    }

    pub(super) fn kept_workers(&mut self, limit: usize) -> Result<Vec<Registered>> {
        let params = params![self.ns => INT4, most(limit) => INT8];
        self.session.all(statement!("workers"), params)?.iter().map(worker).collect()
    }

    pub(super) fn keep_worker(&mut self, worker: &Registered) -> Result<()> {
        let Registered { card, started_at, seen_at } = worker;
        self.session.execute(
            statement!("save_worker"),
            params![
                self.ns => INT4,
                card.id.as_str() => TEXT,
                card.robot.as_str() => TEXT,
                card.host.as_str() => TEXT,
                i64::from(card.pid) => INT8,
                card.version.as_str() => TEXT,
                i64::from(card.concurrency) => INT8,
                i64::from(card.running) => INT8,
                started_at.as_millis() => INT8,
                seen_at.as_millis() => INT8,
            ],
        )?;
        Ok(())
    }

    pub(super) fn forget_worker(&mut self, id: &Label) -> Result<()> {
        self.session.execute(statement!("remove_worker"), params![self.ns => INT4, id.as_str() => TEXT])?;
        Ok(())
    }

    pub(super) fn forget_workers(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        let params = params![self.ns => INT4, before.as_millis() => INT8, most(limit) => INT8];
        self.session.execute(statement!("remove_workers"), params)?;
        Ok(())
    }
}
