//! The schema's versions.

use acta_core::{Error, Result};

use super::codec::get;
use super::connection::Connections;

/// A step of the schema.
#[derive(Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1.
    pub version: i32,
    /// Its name.
    pub name: &'static str,
    sql: &'static str,
}

/// Append only: a migration that was released is never changed.
static MIGRATIONS: [Migration; 2] = [
    Migration { version: 1, name: "ledger", sql: include_str!("sql/migrations/0001_ledger.sql") },
    Migration { version: 2, name: "lean_standing", sql: include_str!("sql/migrations/0002_lean_standing.sql") },
];

/// The functions, all of which are made anew behind every migration.
const FUNCTIONS: [&str; 13] = [
    include_str!("sql/functions/clear.sql"),
    include_str!("sql/functions/common.sql"),
    include_str!("sql/functions/ending.sql"),
    include_str!("sql/functions/enqueue.sql"),
    include_str!("sql/functions/claim.sql"),
    include_str!("sql/functions/settle.sql"),
    include_str!("sql/functions/exchange.sql"),
    include_str!("sql/functions/operate.sql"),
    include_str!("sql/functions/prune.sql"),
    include_str!("sql/functions/tend.sql"),
    include_str!("sql/functions/input.sql"),
    include_str!("sql/functions/api.sql"),
    include_str!("sql/functions/grants.sql"),
];

/// Whoever changes the schema holds this lock.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1633907809, 0)";

fn newest() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

impl Migration {
    /// What is to be done for it, as one script; it is one transaction, so that it is never half done.
    pub fn script(&self) -> String {
        let mut script = String::new();
        if self.version == 1 {
            script.push_str("CREATE SCHEMA IF NOT EXISTS acta;\n");
        }
        script.push_str(self.sql);
        let record = format!(
            "INSERT INTO acta.migrations (version, name, applied_at)\nVALUES ({}, '{}', \
             floor(extract(epoch FROM clock_timestamp()) * 1000));\n",
            self.version, self.name
        );
        script + &record
    }
}

/// The migrations that a ledger of `version` lacks, and the functions, as one script.
pub fn pending(version: Option<i32>) -> (Vec<&'static Migration>, String) {
    let missing: Vec<_> = MIGRATIONS.iter().filter(|migration| migration.version > version.unwrap_or(0)).collect();
    let mut script: String = missing.iter().map(|migration| migration.script()).collect();
    if !missing.is_empty() {
        script.extend(FUNCTIONS);
    }
    (missing, script)
}

/// The version of the ledger in the database; `None` if there is none. Refuses one that is not ours, or newer.
pub(super) async fn inspect(db: &Connections) -> Result<Option<i32>> {
    let there = db
        .all(None, "SELECT to_regclass('acta.migrations') IS NOT NULL, to_regclass('acta.jobs') IS NOT NULL", &[])
        .await?;
    let (has_record, has_jobs) = match there.first() {
        Some(row) => (get::<bool>(row, 0)?, get::<bool>(row, 1)?),
        None => (false, false),
    };
    if !has_record {
        return if has_jobs {
            let why = "is half there: it has tables of a ledger, but no record of their version";
            Err(db.unreadable("schema acta", why))
        } else {
            Ok(None)
        };
    }
    let rows = db.all(None, "SELECT version, name FROM acta.migrations ORDER BY version", &[]).await?;
    let mut version = None;
    for (index, row) in rows.iter().enumerate() {
        let (found, name): (i32, &str) = (get(row, 0)?, get(row, 1)?);
        match MIGRATIONS.get(index) {
            Some(known) if known.version == found && known.name == name => version = Some(found),
            _ if found > newest() => {
                let why = format!("is version {found}, newer than the {} known here; use a newer release", newest());
                return Err(db.unreadable("schema acta", why));
            }
            _ => {
                let why = format!("version {found} is {name:?}, which is not ours; is it another product's schema?");
                return Err(db.unreadable("schema acta", why));
            }
        }
    }
    version.map(Some).ok_or_else(|| db.unreadable("schema acta", "is half there: its record of versions is empty"))
}

/// Makes an absent ledger; accepts a current one; refuses any other.
pub(super) async fn create_or_accept(db: &Connections) -> Result<()> {
    match inspect(db).await? {
        None => migrate(db).await.map(|_| ()),
        Some(version) if version == newest() => Ok(()),
        Some(version) => {
            let why = format!("is version {version}; `orchestrator migrate` brings it to version {}", newest());
            Err(db.unreadable("schema acta", why))
        }
    }
}

/// Brings the ledger to this release's schema; what was applied.
pub(super) async fn migrate(db: &Connections) -> Result<Vec<&'static Migration>> {
    let client = db.get().await?;
    let run = |sql: String| {
        let client = &client;
        async move { client.batch_execute(&sql).await.map_err(|fault| db.fault(None, &fault)) }
    };
    run(format!("BEGIN; {LOCK}")).await?;
    // Somebody else may have done it while this one waited.
    let done = async {
        let (missing, script) = pending(inspect(db).await?);
        run(script).await?;
        Ok::<_, Error>(missing)
    };
    match done.await {
        Ok(missing) => run("COMMIT".into()).await.map(|()| missing),
        Err(fault) => {
            run("ROLLBACK".into()).await?;
            Err(fault)
        }
    }
}
