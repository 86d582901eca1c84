//! Outboxes: rows from a shop's database to a ledger, and the same by hand.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acta::Ledger;
use acta::outbox::{Dialect, Relay, Source, TableName, open};
use acta_store::sqlite::Synchronous;
use acta_testkit::postgres::Database;
use anyhow::Result;
use rusqlite::Connection;

use crate::postgres::raw::connect;

/// What is carried out by hand: a minimal table on either side, and no more than what must be durable.
pub const RAW: [&str; 5] = [
    "CREATE TABLE source (id bigint PRIMARY KEY, lane text, payload text NOT NULL, taken bigint)",
    "CREATE TABLE target (id bigint PRIMARY KEY, message bigint UNIQUE, lane text, payload text NOT NULL)",
    "UPDATE source SET taken = 1 WHERE id IN (SELECT id FROM source WHERE taken IS NULL ORDER BY id LIMIT 1000) RETURNING id, lane, payload",
    "INSERT INTO target (id, message, lane, payload) … ON CONFLICT (message) DO NOTHING",
    "DELETE FROM source WHERE id = ANY (…)",
];
const BATCH: i64 = 1_000;
const LANES: usize = 200;

/// Where the shop's rows are.
pub enum Shop {
    /// In this database.
    Postgres(Database),
    /// In a file of this folder.
    Sqlite(tempfile::TempDir),
}

/// The numbers from 1 to `count`, as a table `s (n)`.
fn numbers(shop: &Shop, count: usize) -> String {
    match shop {
        Shop::Postgres(_) => format!("generate_series(1, {count}) s (n)"),
        Shop::Sqlite(_) => {
            let all = format!("SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {count}");
            format!("(WITH RECURSIVE s AS ({all}) SELECT n FROM s) s")
        }
    }
}

impl Shop {
    /// Where it is.
    pub fn address(&self) -> String {
        match self {
            Self::Postgres(database) => database.url(),
            Self::Sqlite(folder) => format!("sqlite:{}", Self::file(folder.path(), "shop.db").display()),
        }
    }

    fn file(folder: &Path, name: &str) -> std::path::PathBuf {
        folder.join(name)
    }

    fn open_file(&self) -> Result<Connection> {
        let Self::Sqlite(folder) = self else { anyhow::bail!("no file") };
        let db = Connection::open(Self::file(folder.path(), "shop.db"))?;
        db.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = normal")?;
        Ok(db)
    }

    /// Runs a script.
    pub async fn run(&self, script: &str) -> Result<()> {
        match self {
            Self::Postgres(database) => connect(&database.url()).await?.batch_execute(script).await?,
            Self::Sqlite(_) => self.open_file()?.execute_batch(script)?,
        }
        Ok(())
    }

    /// Makes the outbox.
    pub async fn make(&self) -> Result<Arc<dyn Source>> {
        let dialect = if let Self::Postgres(_) = self { Dialect::Postgres } else { Dialect::Sqlite };
        self.run(&dialect.ddl(&TableName::default())).await?;
        Ok(open(&self.address(), &TableName::default())?)
    }

    /// Stages so many rows in lanes, a thousand at once.
    pub async fn stage(&self, count: usize, filling: &str) -> Result<()> {
        let payload = format!("'{{\"filling\":\"{filling}\"}}'");
        let slice = |begun: usize| {
            let from = numbers(self, (count - begun).min(1_000));
            format!(
                "INSERT INTO acta_outbox (namespace, name, payload, lane)
                 SELECT 'bench', 'nothing', {payload}, 'lane ' || (n % {LANES}) FROM {from};"
            )
        };
        self.run(&(0..count).step_by(1_000).map(slice).collect::<String>()).await
    }

    /// Adds so many rows that stay: half of them parked behind a head that waits, half in quarantine.
    pub async fn crowd(&self, count: usize) -> Result<()> {
        let from = numbers(self, count / 2);
        self.run(&format!(
            "INSERT INTO acta_outbox (namespace, payload, lane, status, until_ms) VALUES ('bench', '1', 'stuck', 1, 99999999999999);
             INSERT INTO acta_outbox (namespace, payload, lane, status) SELECT 'bench', '1', 'stuck', 2 FROM {from};
             INSERT INTO acta_outbox (namespace, payload, lane, status, quarantined_ms)
             SELECT 'bench', '1', 'lane ' || (n % 20000), 3, 1 FROM {from}"
        ))
        .await?;
        // What comes by itself a minute later, and is no part of what is measured.
        let settled: &[&str] = match self {
            Self::Postgres(_) => &["VACUUM (ANALYZE)", "CHECKPOINT"],
            Self::Sqlite(_) => &["ANALYZE; PRAGMA wal_checkpoint (TRUNCATE)"],
        };
        for script in settled {
            self.run(script).await?;
        }
        Ok(())
    }
}

/// Carries all rows; how long it took.
pub async fn carry(ledger: &Ledger, source: Arc<dyn Source>) -> Result<Duration> {
    let start = Instant::now();
    Relay::new(ledger).source(source).until_idle(true).run(std::future::pending()).await?;
    Ok(start.elapsed())
}

/// The same by hand in PostgreSQL: take, insert, delete, each a transaction.
pub async fn carry_by_hand(shop: &Database, ledger: &Database, count: usize, filling: &str) -> Result<Duration> {
    let (from, to) = (connect(&shop.url()).await?, connect(&ledger.url()).await?);
    let rows = format!(
        "CREATE TABLE source (id bigint PRIMARY KEY, lane text, payload text NOT NULL, taken bigint);
         INSERT INTO source SELECT n, 'lane ' || (n % {LANES}), '{filling}' FROM generate_series(1, {count}) n;
         CREATE INDEX free ON source (id) WHERE taken IS NULL"
    );
    from.batch_execute(&rows).await?;
    to.batch_execute(
        "CREATE TABLE target (id bigserial PRIMARY KEY, message bigint UNIQUE, lane text, payload text NOT NULL)",
    )
    .await?;
    let take = from
        .prepare(
            "UPDATE source SET taken = 1
             WHERE id = ANY (ARRAY(SELECT id FROM source WHERE taken IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
             RETURNING id, lane, payload",
        )
        .await?;
    let delete = from.prepare("DELETE FROM source WHERE id = ANY ($1)").await?;
    let insert = to
        .prepare(
            "INSERT INTO target (message, lane, payload) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
             ON CONFLICT (message) DO NOTHING",
        )
        .await?;
    let start = Instant::now();
    loop {
        let rows = from.query(&take, &[&BATCH]).await?;
        if rows.is_empty() {
            return Ok(start.elapsed());
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let lanes: Vec<&str> = rows.iter().map(|row| row.get(1)).collect();
        let payloads: Vec<&str> = rows.iter().map(|row| row.get(2)).collect();
        to.execute(&insert, &[&ids, &lanes, &payloads]).await?;
        from.execute(&delete, &[&ids]).await?;
    }
}

/// The same by hand from one SQLite file to another, whose commits are on disk when `synchronous` says.
pub fn carry_by_hand_in_files(count: usize, filling: &str, synchronous: Synchronous) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let open = |name: &str, synchronous: Synchronous| -> Result<Connection> {
        let db = Connection::open(folder.path().join(name))?;
        db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        db.pragma_update(None, "synchronous", if synchronous == Synchronous::Full { "full" } else { "normal" })?;
        Ok(db)
    };
    let (mut from, mut to) = (open("from.db", Synchronous::Normal)?, open("to.db", synchronous)?);
    from.execute_batch(&format!(
        "CREATE TABLE source (id INTEGER PRIMARY KEY, lane TEXT, payload TEXT NOT NULL, taken INTEGER);
         INSERT INTO source WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {count})
         SELECT n, 'lane ' || (n % {LANES}), '{filling}', NULL FROM s;
         CREATE INDEX free ON source (id) WHERE taken IS NULL"
    ))?;
    to.execute_batch(
        "CREATE TABLE target (id INTEGER PRIMARY KEY, message INTEGER UNIQUE, lane TEXT, payload TEXT NOT NULL)",
    )?;
    let start = Instant::now();
    loop {
        let rows = from
            .prepare_cached(
                "UPDATE source SET taken = 1 WHERE id IN (SELECT id FROM source WHERE taken IS NULL ORDER BY id LIMIT ?1)
                 RETURNING id, lane, payload",
            )?
            .query_map([BATCH], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(i64, String, String)>>>()?;
        if rows.is_empty() {
            return Ok(start.elapsed());
        }
        let inside = to.transaction()?;
        for (id, lane, payload) in &rows {
            inside
                .prepare_cached(
                    "INSERT INTO target (message, lane, payload) VALUES (?1, ?2, ?3) ON CONFLICT (message) DO NOTHING",
                )?
                .execute((id, lane, payload))?;
        }
        inside.commit()?;
        let inside = from.transaction()?;
        for (id, ..) in &rows {
            inside.prepare_cached("DELETE FROM source WHERE id = ?1")?.execute([id])?;
        }
        inside.commit()?;
    }
}
