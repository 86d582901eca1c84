//! The schema's versions.

use acta_core::{Error, Result};

use super::codec::get;
use super::connection::Connections;
use crate::migration::{Migration, Pending, behind};

static MIGRATIONS: [Migration; 5] = [
    Migration { version: 1, name: "ledger", sql: include_str!("sql/migrations/0001_ledger.sql") },
    Migration { version: 2, name: "lean_standing", sql: include_str!("sql/migrations/0002_lean_standing.sql") },
    Migration { version: 3, name: "traceparent", sql: include_str!("sql/migrations/0003_traceparent.sql") },
    Migration { version: 4, name: "vitals", sql: include_str!("sql/migrations/0004_vitals.sql") },
    Migration { version: 5, name: "places", sql: include_str!("sql/migrations/0005_places.sql") },
];

/// Takes away the functions of an earlier release.
const CLEAR: &str = include_str!("sql/functions/clear.sql");

/// The functions, all of which are made anew behind every migration.
const FUNCTIONS: [&str; 13] = [
    include_str!("sql/functions/common.sql"),
    include_str!("sql/functions/ending.sql"),
    include_str!("sql/functions/enqueue.sql"),
    include_str!("sql/functions/claim.sql"),
    include_str!("sql/functions/settle.sql"),
    include_str!("sql/functions/exchange.sql"),
    include_str!("sql/functions/operate.sql"),
    include_str!("sql/functions/vitals.sql"),
    include_str!("sql/functions/prune.sql"),
    include_str!("sql/functions/tend.sql"),
    include_str!("sql/functions/input.sql"),
    include_str!("sql/functions/api.sql"),
    include_str!("sql/functions/grants.sql"),
];

/// Whoever changes the schema holds this lock.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1633907809, 0)";

fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

/// What is to be done for a migration, as a script.
fn script_of(migration: &Migration) -> String {
    let Migration { version, name, sql } = migration;
    let schema = if *version == 1 { "CREATE SCHEMA IF NOT EXISTS acta;\n" } else { "" };
    format!(
        "{schema}{sql}INSERT INTO acta.migrations (version, name, applied_at)\nVALUES ({version}, '{name}', \
         floor(extract(epoch FROM clock_timestamp()) * 1000));\n"
    )
}

/// What a ledger of `version` lacks: migrations, and the functions made anew behind them.
pub fn pending(version: Option<i64>) -> Pending {
    let migrations = behind(&MIGRATIONS, version);
    let mut script = String::new();
    if !migrations.is_empty() {
        // The functions may have been what a table depends on.
        script.push_str(if version.is_some() { CLEAR } else { "" });
        script.extend(migrations.iter().map(|migration| script_of(migration)));
        script.extend(FUNCTIONS);
    }
    Pending { migrations, script }
}

/// The version of the ledger in the database; `None` if there is none. Refuses one that is not ours, or newer.
pub(super) async fn inspect(db: &Connections) -> Result<Option<i64>> {
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
        let found = i64::from(found);
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
        let pending = pending(inspect(db).await?);
        run(pending.script).await?;
        Ok::<_, Error>(pending.migrations)
    };
    match done.await {
        Ok(applied) => run("COMMIT".into()).await.map(|()| applied),
        Err(fault) => {
            run("ROLLBACK".into()).await?;
            Err(fault)
        }
    }
}
