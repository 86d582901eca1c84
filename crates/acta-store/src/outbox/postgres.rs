//! An outbox in a PostgreSQL database of the application's.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acta_core::relay::{Discarded, Quarantined, Reason, Row, Source, Standing, Taken, Which, Why};
use acta_core::{Error, Result, Span, Timestamp};
use async_trait::async_trait;

use super::table::Statements;
use super::{Chosen, Dialect, Rounds, SWEPT, TableName, UNPARKED, kept, parted};
use crate::postgres::client::{Connections, Param, get, params};

/// How many connections a relay needs: one that takes while another one removes.
const CONNECTIONS: usize = 2;
/// An outbox in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresOutbox {
    db: Connections,
    place: String,
    statements: Statements,
    rounds: Mutex<Rounds>,
}

impl PostgresOutbox {
    /// The outbox in the database at `url`, to which nothing is connected yet.
    pub fn new(url: &str, table: &TableName) -> Result<Self> {
        let db = Connections::new(&url.parse()?, CONNECTIONS)?;
        let place = format!("the outbox {} in {}", table.as_str(), db.place());
        let statements = Statements::new(Dialect::Postgres, table);
        Ok(Self { db, place, statements, rounds: Mutex::default() })
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        // Nobody panics while holding it.
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn all(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<tokio_postgres::Row>> {
        let client = self.db.get().await?;
        client.query_typed(sql, params).await.map_err(|fault| {
            let mut why = fault.as_db_error().map_or_else(|| fault.to_string(), |said| said.message().to_owned());
            if fault.code() == Some(&tokio_postgres::error::SqlState::UNDEFINED_TABLE) {
                why.push_str("; `orchestrator outbox ddl --for postgres` prints what makes it");
            }
            Error::Unavailable { place: self.place.clone(), why }
        })
    }

    async fn listed(&self, sql: &str, which: &Which) -> Result<Vec<tokio_postgres::Row>> {
        let is_some = i32::from(which.ids.is_some());
        let ids = which.ids.as_deref().unwrap_or_default();
        let limit = i64::try_from(which.limit).unwrap_or(i64::MAX);
        let params = params![
            which.after => INT8,
            which.namespace => TEXT,
            which.lane => TEXT,
            is_some => INT4,
            ids => INT8_ARRAY,
            limit => INT8,
        ];
        self.all(sql, params).await
    }

    /// A statement whose answer is how many rows it changed.
    async fn count(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT count(*) FROM changed");
        let rows = self.all(&sql, params).await?;
        rows.first().map_or(Ok(0), |row| get::<i64>(row, 0).map(i64::unsigned_abs))
    }

    async fn now(&self) -> Result<Timestamp> {
        let rows = self.all(&self.statements.now, &[]).await?;
        rows.first().map_or(Ok(0), |row| get(row, 0)).map(Timestamp::from_millis)
    }

    async fn sweep(&self) -> Result<()> {
        let (namespace, lane) = self.rounds().cursor.clone();
        let found = self
            .all(&self.statements.sweep, params![namespace => TEXT, lane => TEXT, i64::from(SWEPT) => INT8])
            .await?;
        let is_full = found.len() >= usize::from(SWEPT);
        let last = found.last().filter(|_| is_full);
        let cursor = last.map(|row| Ok::<_, Error>((get(row, 0)?, get(row, 1)?))).transpose()?.unwrap_or_default();
        self.rounds().cursor = cursor;
        let heads = found.iter().map(|row| get(row, 2)).collect::<Result<Vec<Option<i64>>>>()?;
        self.unpark_heads(&heads.into_iter().flatten().collect::<Vec<_>>()).await
    }

    /// Of these parked rows those come that are the first of their lines now.
    async fn unpark_heads(&self, ids: &[i64]) -> Result<()> {
        if !ids.is_empty() {
            self.all(&self.statements.unpark_heads, params![ids => INT8_ARRAY]).await?;
        }
        Ok(())
    }

    async fn unpark(&self, rows: impl IntoIterator<Item = &Row> + Send) -> Result<()> {
        let (mut namespaces, mut lanes) = (Vec::new(), Vec::new());
        for (namespace, of_it) in super::lines(rows) {
            namespaces.extend(std::iter::repeat_n(namespace.to_owned(), of_it.len()));
            lanes.extend(of_it.into_iter().map(str::to_owned));
        }
        if !lanes.is_empty() {
            let params = params![namespaces => TEXT_ARRAY, lanes => TEXT_ARRAY, UNPARKED => INT8];
            self.all(&self.statements.unpark_lines, params).await?;
        }
        Ok(())
    }
}

fn row(from: &tokio_postgres::Row) -> Result<Row> {
    Ok(Row {
        id: get(from, 0)?,
        message: get(from, 1)?,
        namespace: get(from, 2)?,
        name: get(from, 3)?,
        payload: get(from, 4)?,
        lane: get(from, 5)?,
        dedup_key: get(from, 6)?,
        options: get(from, 7)?,
        refusals: get::<i32>(from, 8)?.unsigned_abs(),
        first_taken_at: Timestamp::from_millis(get(from, 9)?),
    })
}

#[async_trait]
impl Source for PostgresOutbox {
    async fn id(&self) -> Result<String> {
        let rows = self.all(&self.statements.source_id, &[]).await?;
        let none = || Error::Unavailable { place: self.place.clone(), why: "its table of sources is empty".into() };
        get(rows.first().ok_or_else(none)?, 0)
    }

    async fn take(&self, token: &str, most: usize, hold: Span) -> Result<Taken> {
        let is_release_due = self.rounds().is_release_due();
        if is_release_due {
            self.all(&self.statements.release, &[]).await?;
        }
        let is_sweep_due = self.rounds().is_sweep_due();
        if is_sweep_due {
            self.sweep().await?;
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let looked = self.all(&self.statements.choose, params![most => INT8]).await?;
        let mut chosen = Vec::with_capacity(looked.len());
        for row in &looked {
            let lane: Option<String> = get(row, 2)?;
            let namespace = get(row, 1)?;
            chosen.push(Chosen { id: get(row, 0)?, line: lane.map(|lane| (namespace, lane)), is_behind: get(row, 3)? });
        }
        let (free, behind) = parted(&chosen);
        if !behind.is_empty() {
            self.all(&self.statements.park, params![behind => INT8_ARRAY]).await?;
            // What they stood behind may have gone since the look; whoever lets it go from now on sees them parked.
            self.unpark_heads(&super::firsts(&chosen)).await?;
        }
        if free.is_empty() {
            return Ok(Taken { has_found: !chosen.is_empty(), ..Taken::default() });
        }
        let hold_ms = hold.as_millis();
        let params = params![token => TEXT, hold_ms => INT8, free => INT8_ARRAY];
        let got = self.all(&self.statements.take, params).await?.iter().map(row).collect::<Result<Vec<Row>>>()?;
        let (rows, given_back) = kept(&chosen, got);
        self.give_back(token, &given_back).await?;
        Ok(Taken { rows, now: self.now().await?, has_found: true })
    }

    async fn remove(&self, token: &str, rows: &[&Row]) -> Result<()> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        self.all(&self.statements.remove, params![token => TEXT, ids => INT8_ARRAY]).await?;
        self.unpark(rows.iter().copied()).await
    }

    async fn give_back(&self, token: &str, ids: &[i64]) -> Result<()> {
        if !ids.is_empty() {
            self.all(&self.statements.give_back, params![token => TEXT, ids => INT8_ARRAY]).await?;
        }
        Ok(())
    }

    async fn defer(&self, token: &str, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()> {
        // Those behind it first: while it is held, nobody takes them.
        if !behind.is_empty() {
            self.all(&self.statements.park_behind, params![token => TEXT, behind => INT8_ARRAY]).await?;
        }
        let params = params![token => TEXT, row.id => INT8, delay.as_millis() => INT8, fault => TEXT];
        self.all(&self.statements.defer, params).await.map(|_| ())
    }

    async fn quarantine(&self, token: &str, row: &Row, reason: &Reason) -> Result<()> {
        let params = params![token => TEXT, row.id => INT8, reason.to_string() => TEXT];
        self.all(&self.statements.quarantine, params).await?;
        self.unpark([row]).await
    }

    async fn standing(&self) -> Result<Standing> {
        let mut standing = Standing { now: self.now().await?, ..Standing::default() };
        for row in &self.all(&self.statements.standing, &[]).await? {
            super::tell(&mut standing, get::<i16>(row, 0)?.into(), get(row, 1)?, get(row, 2)?);
        }
        Ok(standing)
    }

    async fn quarantined(&self, which: &Which) -> Result<Vec<Quarantined>> {
        self.listed(&self.statements.quarantined, which).await?.iter().map(quarantined).collect()
    }

    async fn requeue(&self, ids: &[i64]) -> Result<u64> {
        self.count(&self.statements.requeue, params![ids => INT8_ARRAY]).await
    }

    async fn discard(&self, ids: &[i64]) -> Result<u64> {
        self.count(&self.statements.discard, params![ids => INT8_ARRAY]).await
    }

    async fn keep(&self, ids: &[i64], why: &Why) -> Result<()> {
        let params = params![ids => INT8_ARRAY, why.actor => TEXT, why.reason => TEXT];
        self.all(&self.statements.keep, params).await.map(|_| ())
    }

    async fn discarded(&self, which: &Which) -> Result<Vec<Discarded>> {
        let of = |from: &tokio_postgres::Row| {
            Ok(Discarded {
                quarantined: quarantined(from)?,
                discarded_at: Timestamp::from_millis(get(from, 13)?),
                why: Why { actor: get(from, 14)?, reason: get(from, 15)? },
            })
        };
        self.listed(&self.statements.discarded, which).await?.iter().map(of).collect()
    }
}

fn quarantined(from: &tokio_postgres::Row) -> Result<Quarantined> {
    Ok(Quarantined {
        row: row(from)?,
        staged_at: Timestamp::from_millis(get(from, 10)?),
        quarantined_at: get::<Option<i64>>(from, 11)?.map(Timestamp::from_millis),
        fault: get(from, 12)?,
    })
}
