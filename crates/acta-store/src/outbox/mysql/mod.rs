//! An outbox in a MySQL or MariaDB database of the application's.
//!
//! Rows are found by plain looks, which lock nothing, and changed by their numbers, each time in one statement. A change of rows that
//! nobody holds leaves alone what somebody else has locked: it is there at the next look.

mod bound;
mod session;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acta_core::relay::{Discarded, Held, Look, Quarantined, Reason, Row, Source, Standing, Which, Why};
use acta_core::{Error, Result, Span, Timestamp};
use async_trait::async_trait;

use super::table::{Mysql, Statements};
use super::{Dialect, Holder, Rounds, SWEPT, Seen, TableName, coming, held, ids, lines, lines_behind};
use bound::{MOST, Param, bound, many, one, texts};
use session::{Attempt, Connections, get};

/// How many lines one statement asks for. Fewer are filled up with the last one, so that few statements are prepared.
const LINES: [usize; 3] = [1, 8, 64];

/// An outbox in a MySQL or MariaDB database.
#[derive(Debug)]
pub struct MysqlOutbox {
    db: Connections,
    statements: Statements,
    /// In the words of MySQL.
    mysql: Mysql,
    rounds: Mutex<Rounds>,
}

impl MysqlOutbox {
    /// The outbox in the database at `url`, to which nothing is connected yet.
    pub fn new(url: &str, table: &TableName) -> Result<Self> {
        let db = Connections::new(url, &format!("the outbox {}", table.as_str()))?;
        let statements = Statements::new(Dialect::Mysql, table);
        Ok(Self { db, statements, mysql: Mysql::new(Dialect::Mysql, table), rounds: Mutex::default() })
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        // Nobody panics while holding it.
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn all(&self, sql: &str, params: &[Param]) -> Result<Vec<mysql_async::Row>> {
        self.db.attempts(|| self.all_once(sql, params)).await
    }

    async fn all_once(&self, sql: &str, params: &[Param]) -> Attempt<Vec<mysql_async::Row>> {
        let mut session = self.db.get().await?;
        let rows = session.run(sql, params).await?;
        self.db.put(session);
        Ok(rows)
    }

    /// A statement on the rows of these numbers, as many at once as may be; how many it changed.
    async fn change(&self, sql: &str, ids: &[i64], params: impl Fn(&[i64]) -> Vec<Param> + Send + Sync) -> Result<u64> {
        let mut changed = 0;
        for ids in ids.chunks(MOST) {
            let params = params(ids);
            changed += self.db.attempts(|| self.change_once(sql, &params)).await?;
        }
        Ok(changed)
    }

    async fn change_once(&self, sql: &str, params: &[Param]) -> Attempt<u64> {
        let mut session = self.db.get().await?;
        session.run(sql, params).await?;
        let changed = session.changed();
        self.db.put(session);
        Ok(changed)
    }

    /// A statement on the rows of these numbers alone.
    async fn change_ids(&self, sql: &str, ids: &[i64]) -> Result<u64> {
        self.change(sql, ids, |ids| vec![many(ids)]).await
    }

    /// Rows of these numbers, or of any, in their order.
    async fn listed(&self, sql: &str, which: &Which) -> Result<Vec<mysql_async::Row>> {
        let mut ids = which.ids.clone().unwrap_or_else(|| vec![0]);
        ids.sort_unstable();
        let mut found = Vec::new();
        for some in ids.chunks(MOST) {
            let params = [
                one(which.after),
                one(which.namespace.as_deref()),
                one(which.lane.as_deref()),
                one(which.ids.is_some()),
                many(some),
                one(which.limit),
            ];
            found.extend(self.all(sql, &params).await?);
        }
        Ok(found)
    }

    async fn numbers(&self, sql: &str, params: &[Param]) -> Result<Vec<i64>> {
        self.read(&self.all(sql, params).await?, |row| get(row, 0))
    }

    fn read<T>(&self, rows: &[mysql_async::Row], of: impl FnMut(&mysql_async::Row) -> Attempt<T>) -> Result<Vec<T>> {
        rows.iter().map(of).collect::<Attempt<_>>().map_err(|fault| self.db.unavailable(&fault))
    }

    async fn release(&self) -> Result<()> {
        let due = self.numbers(&self.mysql.due, &[one(MOST)]).await?;
        self.change_ids(&self.mysql.release, &due).await.map(|_| ())
    }

    /// Finds lines that were left behind, and lets them go on; whether there are more lines to be looked at, or some have come.
    async fn sweep(&self) -> Result<bool> {
        let (namespace, lane) = self.rounds().cursor.clone();
        let found = self.all(&self.mysql.sweep, &[one(namespace), one(lane), one(SWEPT)]).await?;
        let found: Vec<(String, String, Option<i64>)> =
            self.read(&found, |row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))?;
        let last = found.last().map(|(namespace, lane, _)| (namespace.clone(), lane.clone()));
        let count = found.len();
        let parked: Vec<i64> = found.into_iter().filter_map(|(.., parked)| parked).collect();
        let come = self.unpark_heads(&parked).await?;
        let mut rounds = self.rounds();
        rounds.has_swept(count, last);
        Ok(come > 0 || !rounds.was_around)
    }

    /// Of these parked rows those come that are the first of their lines now.
    async fn unpark_heads(&self, ids: &[i64]) -> Result<u64> {
        let mut come = 0;
        for ids in ids.chunks(MOST) {
            let heads = self.numbers(&self.mysql.heads, &[many(ids)]).await?;
            come += self.change_ids(&self.mysql.unpark, &heads).await?;
        }
        Ok(come)
    }

    /// So many parked rows of each of these lines.
    async fn parked(&self, lines: &[(&str, &str)], most: i64) -> Result<Vec<i64>> {
        let mut parked = Vec::new();
        for lines in lines.chunks(LINES[LINES.len() - 1]) {
            parked.extend(self.db.attempts(|| self.parked_once(lines, most)).await?);
        }
        Ok(parked)
    }

    /// So many rows of each of these lines come.
    async fn let_on(&self, lines: &[(&str, &str)], most: i64) -> Result<()> {
        if lines.is_empty() || self.all(&self.mysql.is_parked, &[]).await?.is_empty() {
            return Ok(());
        }
        let parked = self.parked(lines, most).await?;
        self.change_ids(&self.mysql.unpark, &parked).await.map(|_| ())
    }

    /// The first parked rows of each of these lines.
    async fn parked_once(&self, lines: &[(&str, &str)], most: i64) -> Attempt<Vec<i64>> {
        let length = LINES.into_iter().find(|length| *length >= lines.len()).unwrap_or(lines.len());
        let filled = lines.iter().chain(lines.last().into_iter().cycle()).take(length);
        let (mut looks, mut values) = (Vec::new(), Vec::new());
        for (namespace, lane) in filled {
            let (look, of_it) = bound(&self.mysql.parked, &[one(*namespace), one(*lane), one(most)]);
            looks.push(look);
            values.extend(of_it);
        }
        let mut session = self.db.get().await?;
        let rows = session.run_as_it_is(looks.join(" UNION ALL "), values).await?;
        self.db.put(session);
        let mut ids = numbers(&rows)?;
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    async fn holder(&self) -> Result<Holder> {
        let of = |row: &mysql_async::Row| {
            Ok(Holder { relay: get(row, 0)?, until_ms: get(row, 1)?, since_ms: get(row, 2)?, now_ms: get(row, 3)? })
        };
        let rows = self.read(&self.all(&self.statements.holder, &[]).await?, of)?;
        rows.into_iter().next().ok_or_else(|| self.is_empty())
    }

    fn is_empty(&self) -> Error {
        Error::Unavailable { place: self.db.place().into(), why: "its table of sources is empty".into() }
    }
}

fn numbers(rows: &[mysql_async::Row]) -> Attempt<Vec<i64>> {
    rows.iter().map(|row| get(row, 0)).collect()
}

fn row(from: &mysql_async::Row) -> Attempt<Row> {
    Ok(Row {
        id: get(from, 0)?,
        message: get(from, 1)?,
        namespace: get(from, 2)?,
        name: get(from, 3)?,
        payload: get(from, 4)?,
        lane: get(from, 5)?,
        dedup_key: get(from, 6)?,
        options: get(from, 7)?,
        refusals: get(from, 8)?,
        staged_at: Timestamp::from_millis(get(from, 9)?),
        requeued_at: get::<Option<i64>>(from, 10)?.map(Timestamp::from_millis),
        has_behind: false,
    })
}

#[async_trait]
impl Source for MysqlOutbox {
    async fn id(&self) -> Result<String> {
        let rows = self.read(&self.all(&self.statements.source_id, &[]).await?, |row| get(row, 0))?;
        rows.into_iter().next().ok_or_else(|| self.is_empty())
    }

    async fn hold(&self, relay: &str, hold: Span, is_clear: bool) -> Result<Option<Held>> {
        self.all(&self.statements.hold, &[one(relay), one(hold.as_millis()), one(is_clear)]).await?;
        Ok(held(&self.holder().await?, relay))
    }

    async fn let_go(&self, relay: &str) -> Result<()> {
        self.all(&self.statements.let_go, &[one(relay)]).await.map(|_| ())
    }

    async fn look(&self, most: usize, in_hand: &[i64]) -> Result<Look> {
        let is_release_due = self.rounds().is_release_due();
        if is_release_due {
            self.release().await?;
        }
        let is_sweep_due = self.rounds().is_sweep_due();
        let has_swept = is_sweep_due && self.sweep().await?;
        let most = most.min(MOST);
        let chosen = self.all(&self.mysql.choose, &[one(most + in_hand.len())]).await?;
        let of = |row: &mysql_async::Row| Ok((get(row, 0)?, [get(row, 1)?, get(row, 2)?]));
        let chosen: Vec<(i64, [Option<i64>; 2])> = self.read(&chosen, of)?;
        let in_hand: HashSet<i64> = in_hand.iter().copied().collect();
        let new = chosen.into_iter().filter(|(id, _)| !in_hand.contains(id)).take(most);
        let first_held: BTreeMap<i64, Option<i64>> =
            new.map(|(id, held)| (id, held.into_iter().flatten().min())).collect();
        let mut pending = Vec::new();
        if !first_held.is_empty() {
            let chosen: Vec<i64> = first_held.keys().copied().collect();
            pending = self.read(&self.all(&self.mysql.pending, &[many(&chosen)]).await?, row)?;
        }
        let seen = pending.into_iter().map(|row| (first_held.get(&row.id).copied().flatten(), row));
        let Seen { free, behind } = Seen::of(seen.map(|(held, row)| (row, held)));
        let mut has_found = has_swept || !free.is_empty();
        if !behind.is_empty() {
            has_found |= self.change_ids(&self.mysql.park, &ids(&behind)).await? > 0;
            // What they stood behind may have gone since the look; whoever lets it go from now on sees them parked.
            let first = self.parked(&lines(&behind), 1).await?;
            self.unpark_heads(&first).await?;
        }
        Ok(Look { rows: free, has_found })
    }

    async fn remove(&self, rows: &[Row]) -> Result<u64> {
        let mut gone = 0;
        for some in rows.chunks(MOST) {
            let messages = some.iter().map(|row| row.message.as_str());
            gone += self.change(&self.mysql.remove, &ids(some), |ids| vec![many(ids), texts(messages.clone())]).await?;
        }
        let lines = lines_behind(rows);
        self.let_on(&lines, coming(lines.len())).await?;
        Ok(gone)
    }

    async fn defer(&self, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()> {
        self.all(&self.statements.defer, &[many(&[row.id]), one(delay.as_millis()), one(fault)]).await?;
        self.change_ids(&self.statements.park_behind, behind).await.map(|_| ())
    }

    async fn quarantine(&self, row: &Row, reason: &Reason) -> Result<()> {
        self.all(&self.statements.quarantine, &[many(&[row.id]), one(reason.to_string())]).await?;
        self.let_on(&lines([row]), coming(1)).await
    }

    async fn standing(&self) -> Result<Standing> {
        let mut standing = self.holder().await?.standing();
        let rows = self.all(&self.statements.standing, &[]).await?;
        for (status, count, oldest) in self.read(&rows, |row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))? {
            super::tell(&mut standing, status, count, oldest);
        }
        Ok(standing)
    }

    async fn quarantined(&self, which: &Which) -> Result<Vec<Quarantined>> {
        let mut found = self.read(&self.listed(&self.statements.quarantined, which).await?, quarantined)?;
        found.truncate(which.limit);
        Ok(found)
    }

    async fn requeue(&self, ids: &[i64]) -> Result<u64> {
        self.change_ids(&self.statements.requeue, ids).await
    }

    async fn discard(&self, ids: &[i64]) -> Result<u64> {
        self.change_ids(&self.statements.discard, ids).await
    }

    async fn keep(&self, ids: &[i64], why: &Why) -> Result<()> {
        let said = |ids: &[i64]| vec![many(ids), one(why.actor.as_deref()), one(why.reason.as_deref())];
        self.change(&self.statements.keep, ids, said).await.map(|_| ())
    }

    async fn discarded(&self, which: &Which) -> Result<Vec<Discarded>> {
        let of = |from: &mysql_async::Row| {
            Ok(Discarded {
                quarantined: quarantined(from)?,
                discarded_at: Timestamp::from_millis(get(from, 13)?),
                why: Why { actor: get(from, 14)?, reason: get(from, 15)? },
            })
        };
        let mut found = self.read(&self.listed(&self.statements.discarded, which).await?, of)?;
        found.truncate(which.limit);
        Ok(found)
    }
}

fn quarantined(from: &mysql_async::Row) -> Attempt<Quarantined> {
    Ok(Quarantined {
        row: row(from)?,
        quarantined_at: get::<Option<i64>>(from, 11)?.map(Timestamp::from_millis),
        fault: get(from, 12)?,
    })
}
