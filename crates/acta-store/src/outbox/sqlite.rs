//! An outbox in an SQLite file of the application's.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acta_core::relay::{Discarded, Held, Look, Quarantined, Reason, Row, Source, Standing, Which, Why};
use acta_core::{Error, Result, Span, Timestamp};
use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags, Params, TransactionBehavior, params};

use super::table::{Sqlite, Statements};
use super::{Dialect, Holder, RELEASED, Rounds, SWEPT, Seen, TableName, coming, held, lines, lines_behind};

/// How long a writer of the application is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// How much of the file is kept in memory: negative numbers are KiB.
const CACHE_KIB: i64 = -16_384;

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

    /// What an operator does is durable before it is answered.
    async fn change(&self, what: fn(&Statements) -> &String, ids: &[i64]) -> Result<u64> {
        let ids = list(ids);
        self.run(move |db, words, _| {
            db.pragma_update(None, "synchronous", "FULL")?;
            execute(db, what(&words.common), params![ids])
        })
        .await
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
        db.pragma_update(None, "cache_size", CACHE_KIB)?;
        let journal: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if journal == "wal" {
            // What a relay has written may be lost with the machine's power: the ledger knows what has arrived.
            db.pragma_update(None, "synchronous", "NORMAL")?;
        }
        Ok(db)
    }
}

fn list(ids: &[i64]) -> String {
    serde_json::Value::from(ids).to_string()
}

fn execute(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
    db.prepare_cached(sql)?.execute(params).map(|count| count as u64)
}

fn holder(db: &Connection, statements: &Statements) -> rusqlite::Result<Holder> {
    let of = |row: &rusqlite::Row<'_>| {
        Ok(Holder { relay: row.get(0)?, until_ms: row.get(1)?, since_ms: row.get(2)?, now_ms: row.get(3)? })
    };
    db.prepare_cached(&statements.holder)?.query_row([], of)
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
        staged_at: Timestamp::from_millis(from.get(9)?),
        requeued_at: from.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        has_behind: false,
    })
}

/// What is to be written before rows are looked at.
#[derive(Default)]
struct Due {
    deferred: Vec<i64>,
    /// Parked rows whose lines were left behind.
    stranded: Vec<i64>,
    /// There are more lines to be looked at.
    goes_on: bool,
}

fn due(db: &Connection, words: &Words, rounds: &mut Rounds) -> rusqlite::Result<Due> {
    let mut due = Due::default();
    if rounds.is_release_due() {
        due.deferred = ids(db, &words.own.due, params![RELEASED])?;
    }
    if rounds.is_sweep_due() {
        let (namespace, lane) = &rounds.cursor;
        let mut lines = db.prepare_cached(&words.common.sweep)?;
        let found = lines
            .query_map(params![namespace, lane, i64::from(SWEPT)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(String, String, Option<i64>)>>>()?;
        let last = found.last().map(|(namespace, lane, _)| (namespace.clone(), lane.clone()));
        rounds.has_swept(found.len(), last);
        due.stranded = found.into_iter().filter_map(|(.., parked)| parked).collect();
        due.goes_on = !rounds.was_around;
    }
    Ok(due)
}

fn seen(db: &Connection, words: &Words, most: usize, in_hand: &[i64]) -> rusqlite::Result<Seen> {
    let more = i64::try_from(most.saturating_add(in_hand.len())).unwrap_or(i64::MAX);
    let in_hand: HashSet<i64> = in_hand.iter().copied().collect();
    let mut look = db.prepare_cached(&words.own.look)?;
    let mut rows = look.query(params![more])?;
    let mut seen = Vec::new();
    while seen.len() < most
        && let Some(from) = rows.next()?
    {
        if !in_hand.contains(&from.get(0)?) {
            seen.push((row(from)?, from.get(11)?));
        }
    }
    Ok(Seen::of(seen))
}

fn ids(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached(sql)?.query_map(params, |row| row.get(0))?.collect()
}

/// So many rows of each of these lines come, if its first held one is parked.
fn let_on(db: &Connection, words: &Words, lines: &[(&str, &str)], most: i64) -> rusqlite::Result<()> {
    for (namespace, lane) in lines {
        let parked = ids(db, &words.own.parked, params![namespace, lane, most])?;
        if !parked.is_empty() {
            execute(db, &words.common.unpark, params![list(&parked)])?;
        }
    }
    Ok(())
}

#[async_trait]
impl Source for SqliteOutbox {
    async fn id(&self) -> Result<String> {
        self.run(|db, words, _| db.query_row(&words.common.source_id, [], |row| row.get(0))).await
    }

    async fn hold(&self, relay: &str, hold: Span, is_clear: bool) -> Result<Option<Held>> {
        let (relay, hold_ms) = (relay.to_owned(), hold.as_millis());
        self.run(move |db, words, _| {
            // A look first, which waits for nobody, and for which nobody waits.
            if holder(db, &words.common)?.is_another(&relay) {
                return Ok(None);
            }
            execute(db, &words.common.hold, params![relay, hold_ms, i64::from(is_clear)])?;
            Ok(held(&holder(db, &words.common)?, &relay))
        })
        .await
    }

    async fn let_go(&self, relay: &str) -> Result<()> {
        let relay = relay.to_owned();
        self.run(move |db, words, _| execute(db, &words.common.let_go, params![relay]).map(|_| ())).await
    }

    async fn look(&self, most: usize, in_hand: &[i64]) -> Result<Look> {
        let in_hand = in_hand.to_vec();
        self.run(move |db, words, rounds| {
            // Whoever finds nothing writes nothing.
            let Due { deferred, stranded, goes_on } = due(db, words, rounds)?;
            if !deferred.is_empty() {
                execute(db, &words.common.release, params![list(&deferred)])?;
            }
            if !stranded.is_empty() {
                execute(db, &words.common.unpark, params![list(&stranded)])?;
            }
            let Seen { free, behind } = seen(db, words, most, &in_hand)?;
            if !behind.is_empty() {
                let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
                execute(&db, &words.common.park, params![list(&super::ids(&behind))])?;
                // What they stood behind may have gone since the look.
                let_on(&db, words, &lines(&behind), 1)?;
                db.commit()?;
            }
            Ok(Look { has_found: goes_on || !free.is_empty() || !behind.is_empty(), rows: free })
        })
        .await
    }

    async fn remove(&self, rows: &[Row]) -> Result<u64> {
        let rows = rows.to_vec();
        self.run(move |db, words, _| {
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut gone = 0;
            for row in &rows {
                // By its message, too: a table that was emptied meanwhile may have given its number to another row.
                gone += execute(&db, &words.own.remove, params![row.id, row.message])?;
            }
            let lines = lines_behind(&rows);
            let_on(&db, words, &lines, coming(lines.len()))?;
            db.commit()?;
            Ok(gone)
        })
        .await
    }

    async fn defer(&self, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()> {
        let (id, behind, fault) = (list(&[row.id]), list(behind), fault.to_owned());
        self.run(move |db, words, _| {
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            execute(&db, &words.common.defer, params![id, delay.as_millis(), fault])?;
            execute(&db, &words.common.park_behind, params![behind])?;
            db.commit()
        })
        .await
    }

    async fn quarantine(&self, row: &Row, reason: &Reason) -> Result<()> {
        let (row, reason) = (row.clone(), reason.to_string());
        self.run(move |db, words, _| {
            let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            execute(&db, &words.common.quarantine, params![list(&[row.id]), reason])?;
            let_on(&db, words, &lines([&row]), coming(1))?;
            db.commit()
        })
        .await
    }

    async fn standing(&self) -> Result<Standing> {
        self.run(|db, words, _| {
            let mut standing = holder(db, &words.common)?.standing();
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
        self.run(move |db, words, _| {
            db.pragma_update(None, "synchronous", "FULL")?;
            execute(db, &words.common.keep, params![ids, why.actor, why.reason]).map(|_| ())
        })
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
        quarantined_at: from.get::<_, Option<i64>>(11)?.map(Timestamp::from_millis),
        fault: from.get(12)?,
    })
}
