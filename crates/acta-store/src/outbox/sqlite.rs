//! An outbox in an SQLite file of the application's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acta_core::relay::{Discarded, Quarantined, Reason, Row, Source, Standing, Taken, Which, Why};
use acta_core::{Error, Result, Span, Timestamp};
use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags, Params, TransactionBehavior, params};

use super::table::{Sqlite, Statements};
use super::{Chosen, Dialect, RELEASED, Rounds, SWEPT, TableName, coming, kept, parted};

/// How long a writer of the application is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// An outbox in an SQLite file.
#[derive(Debug)]
pub struct SqliteOutbox {
    inner: Arc<Inner>,
}

/// The statements.
#[derive(Debug)]
struct Words {
    common: Statements,
    own: Sqlite,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    table: TableName,
    words: Words,
    open: Mutex<(Option<Connection>, Rounds)>,
}

impl SqliteOutbox {
    /// The outbox in this file, which is opened when it is needed.
    pub fn new(path: PathBuf, table: &TableName) -> Self {
        let words = Words { common: Statements::new(Dialect::Sqlite, table), own: Sqlite::new(Dialect::Sqlite, table) };
        Self { inner: Arc::new(Inner { path, table: table.clone(), words, open: Mutex::default() }) }
    }

    /// Runs `work` on the connection, on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection, &Words, &mut Rounds) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        let gone = |fault: tokio::task::JoinError| inner.unavailable(&fault.to_string());
        let inner_too = Arc::clone(&inner);
        tokio::task::spawn_blocking(move || inner_too.work(work)).await.map_err(gone)?
    }

    async fn listed<T: Send + 'static>(
        &self,
        what: fn(&Statements) -> &String,
        which: &Which,
        of: fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let which = which.clone();
        self.run(move |db, words, _| {
            let limit = i64::try_from(which.limit).unwrap_or(i64::MAX);
            let (is_some, ids) = (i64::from(which.ids.is_some()), list(which.ids.as_deref().unwrap_or_default()));
            db.prepare_cached(what(&words.common))?
                .query_map(params![which.after, which.namespace, which.lane, is_some, ids, limit], of)?
                .collect()
        })
        .await
    }

    async fn change(&self, what: fn(&Statements) -> &String, ids: &[i64]) -> Result<u64> {
        let ids = list(ids);
        self.run(move |db, words, _| execute(db, what(&words.common), params![ids])).await
    }
}

impl Inner {
    fn unavailable(&self, why: &str) -> Error {
        let place = format!("the outbox {} in {}", self.table.as_str(), self.path.display());
        let hint = if why.contains("no such table") {
            "; `orchestrator outbox ddl --for sqlite` prints what makes it"
        } else {
            ""
        };
        Error::Unavailable { place, why: format!("{why}{hint}") }
    }

    fn work<T>(&self, work: impl FnOnce(&mut Connection, &Words, &mut Rounds) -> rusqlite::Result<T>) -> Result<T> {
        // Whoever panicked has left its transaction, which goes with its connection.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (connection, rounds) = &mut *open;
        let db = match connection.take() {
            Some(db) => Ok(db),
            None => self.connect(),
        };
        let mut db = db.map_err(|fault| self.unavailable(&fault.to_string()))?;
        let answer = work(&mut db, &self.words, rounds);
        // After an error it is begun anew: the file may be another one by now.
        if answer.is_ok() {
            *connection = Some(db);
        }
        answer.map_err(|fault| self.unavailable(&fault.to_string()))
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let db = Connection::open_with_flags(
            &self.path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        db.busy_timeout(BUSY)?;
        Ok(db)
    }
}

fn list(ids: &[i64]) -> String {
    serde_json::Value::from(ids).to_string()
}

fn execute(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
    db.prepare_cached(sql)?.execute(params).map(|count| count as u64)
}

fn now(db: &Connection, statements: &Statements) -> rusqlite::Result<Timestamp> {
    db.prepare_cached(&statements.now)?.query_row([], |row| row.get(0)).map(Timestamp::from_millis)
}

fn row(from: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        id: from.get(0)?,
        message: from.get(1)?,
        namespace: from.get(2)?,
        name: from.get(3)?,
        payload: from.get(4)?,
        lane: from.get(5)?,
        dedup_key: from.get(6)?,
        options: from.get(7)?,
        refusals: from.get(8)?,
        first_taken_at: Timestamp::from_millis(from.get(9)?),
    })
}

/// What a look finds, before anything is written.
#[derive(Default)]
struct Look {
    due: Vec<i64>,
    /// Parked rows whose lines were left behind.
    stranded: Vec<i64>,
    /// There are more lines to be looked at.
    goes_on: bool,
    has_rows: bool,
}

fn look(db: &Connection, words: &Words, rounds: &mut Rounds) -> rusqlite::Result<Look> {
    let mut look = Look::default();
    if rounds.is_release_due() {
        look.due = ids(db, &words.common.due, params![RELEASED])?;
    }
    if rounds.is_sweep_due() {
        let (namespace, lane) = &rounds.cursor;
        let mut lines = db.prepare_cached(&words.common.sweep)?;
        let found = lines
            .query_map(params![namespace, lane, i64::from(SWEPT)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(String, String, Option<i64>)>>>()?;
        let last = found.last().map(|(namespace, lane, _)| (namespace.clone(), lane.clone()));
        rounds.has_swept(found.len(), last);
        look.stranded = found.into_iter().filter_map(|(.., parked)| parked).collect();
        look.goes_on = !rounds.was_around;
    }
    look.has_rows = db.prepare_cached(&words.own.choose)?.exists(params![1])?;
    Ok(look)
}

fn ids(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached(sql)?.query_map(params, |row| row.get(0))?.collect()
}

/// So many rows of each of these lines come, if its first held one is parked.
fn let_on(db: &Connection, words: &Words, lines: &[(String, String)]) -> rusqlite::Result<()> {
    for (namespace, lane) in lines {
        let parked = ids(db, &words.own.parked, params![namespace, lane, coming(lines.len())])?;
        if !parked.is_empty() {
            execute(db, &words.common.unpark, params![list(&parked)])?;
        }
    }
    Ok(())
}

fn owned(lines: Vec<(&str, &str)>) -> Vec<(String, String)> {
    lines.into_iter().map(|(namespace, lane)| (namespace.to_owned(), lane.to_owned())).collect()
}

#[async_trait]
impl Source for SqliteOutbox {
    async fn id(&self) -> Result<String> {
        self.run(|db, words, _| db.query_row(&words.common.source_id, [], |row| row.get(0))).await
    }

    async fn take(&self, token: &str, most: usize, hold: Span) -> Result<Taken> {
        let (token, hold_ms, most) = (token.to_owned(), hold.as_millis(), i64::try_from(most).unwrap_or(i64::MAX));
        self.run(move |db, words, rounds| {
            // A look first, which waits for nobody, and for which nobody waits.
            let found = look(db, words, rounds)?;
            if found.due.is_empty() && found.stranded.is_empty() && !found.has_rows {
                return Ok(Taken { has_found: found.goes_on, ..Taken::default() });
            }
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if !found.due.is_empty() {
                execute(&db, &words.common.release, params![list(&found.due)])?;
            }
            if !found.stranded.is_empty() {
                execute(&db, &words.common.unpark, params![list(&found.stranded)])?;
            }
            let chosen = {
                let mut look = db.prepare_cached(&words.own.choose)?;
                let of = |row: &rusqlite::Row<'_>| {
                    let (namespace, lane): (String, Option<String>) = (row.get(1)?, row.get(2)?);
                    Ok(Chosen { id: row.get(0)?, line: lane.map(|lane| (namespace, lane)), is_behind: row.get(3)? })
                };
                look.query_map(params![most], of)?.collect::<rusqlite::Result<Vec<Chosen>>>()?
            };
            let (free, behind) = parted(&chosen);
            if !behind.is_empty() {
                execute(&db, &words.common.park, params![list(&behind)])?;
            }
            let got = db
                .prepare_cached(&words.common.take)?
                .query_map(params![token, hold_ms, list(&free)], row)?
                .collect::<rusqlite::Result<Vec<Row>>>()?;
            let (rows, given_back) = kept(&chosen, got);
            if !given_back.is_empty() {
                execute(&db, &words.common.give_back, params![token, list(&given_back)])?;
            }
            let now = now(&db, &words.common)?;
            db.commit()?;
            Ok(Taken { rows, now, has_found: found.goes_on || !chosen.is_empty() })
        })
        .await
    }

    async fn remove(&self, token: &str, rows: &[&Row]) -> Result<()> {
        let (token, ids) = (token.to_owned(), list(&rows.iter().map(|row| row.id).collect::<Vec<_>>()));
        let lines = owned(super::lines(rows.iter().copied()));
        self.run(move |db, words, _| {
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            execute(&db, &words.common.remove, params![token, ids])?;
            let_on(&db, words, &lines)?;
            db.commit()
        })
        .await
    }

    async fn give_back(&self, token: &str, ids: &[i64]) -> Result<()> {
        let (token, ids) = (token.to_owned(), list(ids));
        self.run(move |db, words, _| execute(db, &words.common.give_back, params![token, ids]).map(|_| ())).await
    }

    async fn defer(&self, token: &str, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()> {
        let (token, id, behind, fault) = (token.to_owned(), list(&[row.id]), list(behind), fault.to_owned());
        self.run(move |db, words, _| {
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            execute(&db, &words.common.defer, params![token, id, delay.as_millis(), fault])?;
            execute(&db, &words.common.park_behind, params![token, behind])?;
            db.commit()
        })
        .await
    }

    async fn quarantine(&self, token: &str, row: &Row, reason: &Reason) -> Result<()> {
        let (token, id, reason) = (token.to_owned(), list(&[row.id]), reason.to_string());
        let line = owned(super::lines([row]));
        self.run(move |db, words, _| {
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            execute(&db, &words.common.quarantine, params![token, id, reason])?;
            let_on(&db, words, &line)?;
            db.commit()
        })
        .await
    }

    async fn standing(&self) -> Result<Standing> {
        self.run(|db, words, _| {
            let mut standing = Standing { now: now(db, &words.common)?, ..Standing::default() };
            let mut look = db.prepare_cached(&words.common.standing)?;
            let mut rows = look.query([])?;
            while let Some(row) = rows.next()? {
                super::tell(&mut standing, row.get(0)?, row.get(1)?, row.get(2)?);
            }
            Ok(standing)
        })
        .await
    }

    async fn quarantined(&self, which: &Which) -> Result<Vec<Quarantined>> {
        self.listed(|words| &words.quarantined, which, quarantined).await
    }

    async fn requeue(&self, ids: &[i64]) -> Result<u64> {
        self.change(|words| &words.requeue, ids).await
    }

    async fn discard(&self, ids: &[i64]) -> Result<u64> {
        self.change(|words| &words.discard, ids).await
    }

    async fn keep(&self, ids: &[i64], why: &Why) -> Result<()> {
        let (ids, why) = (list(ids), why.clone());
        self.run(move |db, words, _| execute(db, &words.common.keep, params![ids, why.actor, why.reason]).map(|_| ()))
            .await
    }

    async fn discarded(&self, which: &Which) -> Result<Vec<Discarded>> {
        let of = |from: &rusqlite::Row<'_>| {
            Ok(Discarded {
                quarantined: quarantined(from)?,
                discarded_at: Timestamp::from_millis(from.get(13)?),
                why: Why { actor: from.get(14)?, reason: from.get(15)? },
            })
        };
        self.listed(|words| &words.discarded, which, of).await
    }
}

fn quarantined(from: &rusqlite::Row<'_>) -> rusqlite::Result<Quarantined> {
    Ok(Quarantined {
        row: row(from)?,
        staged_at: Timestamp::from_millis(from.get(10)?),
        quarantined_at: from.get::<_, Option<i64>>(11)?.map(Timestamp::from_millis),
        fault: from.get(12)?,
    })
}
