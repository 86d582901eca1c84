//! An outbox in a PostgreSQL database of the application's.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acta_core::relay::{Discarded, Held, Look, Quarantined, Reason, Row, Source, Standing, Which, Why};
use acta_core::{Error, Result, Span, Timestamp};
use async_trait::async_trait;

use super::table::{Postgres, Statements};
use super::{Dialect, Holder, RELEASED, Rounds, SWEPT, Seen, TableName, coming, held, ids, lines, lines_behind};
use crate::postgres::client::{Connections, Param, get, params};

/// How many connections a relay needs: one that takes while another one removes.
const CONNECTIONS: usize = 2;
/// An outbox in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresOutbox {
    db: Connections,
    place: String,
    statements: Statements,
    /// In the words of PostgreSQL.
    own: Postgres,
    rounds: Mutex<Rounds>,
}

impl PostgresOutbox {
    /// The outbox in the database at `url`, to which nothing is connected yet.
    pub fn new(url: &str, table: &TableName) -> Result<Self> {
        let db = Connections::new(&url.parse()?, CONNECTIONS)?;
        let place = format!("the outbox {} in {}", table.as_str(), db.place());
        let statements = Statements::new(Dialect::Postgres, table);
        let own = Postgres::new(Dialect::Postgres, table);
        Ok(Self { db, place, statements, own, rounds: Mutex::default() })
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

    async fn holder(&self) -> Result<Holder> {
        let rows = self.all(&self.statements.holder, &[]).await?;
        let row = rows.first().ok_or_else(|| self.is_empty())?;
        Ok(Holder { relay: get(row, 0)?, until_ms: get(row, 1)?, since_ms: get(row, 2)?, now_ms: get(row, 3)? })
    }

    fn is_empty(&self) -> Error {
        Error::Unavailable { place: self.place.clone(), why: "its table of sources is empty".into() }
    }

    async fn ids(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<i64>> {
        self.all(sql, params).await?.iter().map(|row| get(row, 0)).collect()
    }

    async fn release(&self) -> Result<()> {
        let due = self.ids(&self.own.due, params![RELEASED => INT8]).await?;
        if !due.is_empty() {
            self.all(&self.statements.release, params![due => INT8_ARRAY]).await?;
        }
        Ok(())
    }

    /// Finds lines that were left behind, and lets them go on; whether there are more lines to be looked at, or some have come.
    async fn sweep(&self) -> Result<bool> {
        let (namespace, lane) = self.rounds().cursor.clone();
        let params = params![namespace => TEXT, lane => TEXT, i64::from(SWEPT) => INT8];
        let found = self.all(&self.statements.sweep, params).await?;
        let last = found.last().map(|row| Ok::<_, Error>((get(row, 0)?, get(row, 1)?))).transpose()?;
        let parked = found.iter().map(|row| get(row, 2)).collect::<Result<Vec<Option<i64>>>>()?;
        let parked: Vec<i64> = parked.into_iter().flatten().collect();
        self.unpark(&parked).await?;
        let mut rounds = self.rounds();
        rounds.has_swept(found.len(), last);
        Ok(!parked.is_empty() || !rounds.was_around)
    }

    async fn unpark(&self, ids: &[i64]) -> Result<()> {
        if !ids.is_empty() {
            self.all(&self.statements.unpark, params![ids => INT8_ARRAY]).await?;
        }
        Ok(())
    }

    /// So many rows of each of these lines come, if its first held one is parked.
    async fn let_on(&self, lines: &[(&str, &str)], most: i64) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let (queues, names): (Vec<&str>, Vec<&str>) = lines.iter().copied().unzip();
        let params = params![queues => TEXT_ARRAY, names => TEXT_ARRAY, most => INT8];
        let parked = self.ids(&self.own.parked, params).await?;
        self.unpark(&parked).await
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
        staged_at: Timestamp::from_millis(get(from, 9)?),
        requeued_at: get::<Option<i64>>(from, 10)?.map(Timestamp::from_millis),
        has_behind: false,
    })
}

#[async_trait]
impl Source for PostgresOutbox {
    async fn id(&self) -> Result<String> {
        let rows = self.all(&self.statements.source_id, &[]).await?;
        get(rows.first().ok_or_else(|| self.is_empty())?, 0)
    }

    async fn hold(&self, relay: &str, hold: Span, is_clear: bool) -> Result<Option<Held>> {
        let params = params![relay => TEXT, hold.as_millis() => INT8, i32::from(is_clear) => INT4];
        self.all(&self.statements.hold, params).await?;
        Ok(held(&self.holder().await?, relay))
    }

    async fn let_go(&self, relay: &str) -> Result<()> {
        self.all(&self.statements.let_go, params![relay => TEXT]).await.map(|_| ())
    }

    async fn look(&self, most: usize, in_hand: &[i64]) -> Result<Look> {
        let is_release_due = self.rounds().is_release_due();
        if is_release_due {
            self.release().await?;
        }
        let is_sweep_due = self.rounds().is_sweep_due();
        let has_swept = is_sweep_due && self.sweep().await?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let seen = self.all(&self.own.look, params![most => INT8, in_hand => INT8_ARRAY]).await?;
        let seen = seen.iter().map(|from| Ok((row(from)?, get(from, 11)?))).collect::<Result<Vec<_>>>()?;
        let Seen { free, behind } = Seen::of(seen);
        let mut has_found = has_swept || !free.is_empty();
        if !behind.is_empty() {
            has_found |= self.count(&self.statements.park, params![ids(&behind) => INT8_ARRAY]).await? > 0;
            // What they stood behind may have gone since the look; whoever lets it go from now on sees them parked.
            self.let_on(&lines(&behind), 1).await?;
        }
        Ok(Look { rows: free, has_found })
    }

    async fn remove(&self, rows: &[Row]) -> Result<u64> {
        let messages: Vec<&str> = rows.iter().map(|row| row.message.as_str()).collect();
        let gone = self.count(&self.own.remove, params![ids(rows) => INT8_ARRAY, messages => TEXT_ARRAY]).await?;
        // Two steps, so that whoever parks a row in between looks again behind it.
        let lines = lines_behind(rows);
        self.let_on(&lines, coming(lines.len())).await?;
        Ok(gone)
    }

    async fn defer(&self, row: &Row, behind: &[i64], delay: Span, fault: &str) -> Result<()> {
        let params = params![vec![row.id] => INT8_ARRAY, delay.as_millis() => INT8, fault => TEXT];
        self.all(&self.statements.defer, params).await?;
        if !behind.is_empty() {
            self.all(&self.statements.park_behind, params![behind => INT8_ARRAY]).await?;
        }
        Ok(())
    }

    async fn quarantine(&self, row: &Row, reason: &Reason) -> Result<()> {
        self.all(&self.statements.quarantine, params![vec![row.id] => INT8_ARRAY, reason.to_string() => TEXT]).await?;
        self.let_on(&lines([row]), coming(1)).await
    }

    async fn standing(&self) -> Result<Standing> {
        let mut standing = self.holder().await?.standing();
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
        quarantined_at: get::<Option<i64>>(from, 11)?.map(Timestamp::from_millis),
        fault: get(from, 12)?,
    })
}
