//! The schema's versions.

use acta_core::Result;

use super::connection::Db;
use crate::migration::{Migration, Pending, behind};

static MIGRATIONS: [Migration; 3] = [
    Migration { version: 1, name: "ledger", sql: include_str!("sql/migrations/0001_ledger.sql") },
    Migration { version: 2, name: "traceparent", sql: include_str!("sql/migrations/0002_traceparent.sql") },
    Migration { version: 3, name: "vitals", sql: include_str!("sql/migrations/0003_vitals.sql") },
];

/// What is in a file.
enum Schema {
    Absent,
    Current,
    Older(i64),
}

/// Makes an absent ledger; accepts a current one; refuses any other.
pub(super) fn create_or_accept(db: &Db) -> Result<()> {
    match inspect(db)? {
        Schema::Current => Ok(()),
        Schema::Absent => migrate(db).map(|_| ()),
        Schema::Older(version) => {
            let why =
                format!("its schema is version {version}; `orchestrator migrate` brings it to version {}", newest());
            Err(db.unreadable("schema", why))
        }
    }
}

/// Brings the ledger to this release's schema, making it if there is none; what was applied.
///
/// All of it is one transaction, so that a schema is never half there.
pub(super) fn migrate(db: &Db) -> Result<Vec<&'static Migration>> {
    db.command("BEGIN IMMEDIATE")?;
    // Another process may have done it while this one waited.
    let done = pending(db).and_then(|pending| {
        db.raw.execute_batch(&pending.script).map_err(|fault| db.fault(&fault))?;
        crate::failpoint::failpoint("migrate");
        Ok(pending.migrations)
    });
    match done {
        Ok(applied) => db.command("COMMIT").map(|()| applied),
        Err(fault) => {
            db.command("ROLLBACK")?;
            Err(fault)
        }
    }
}

/// What the ledger lacks.
pub(super) fn pending(db: &Db) -> Result<Pending> {
    Ok(behind_version(match inspect(db)? {
        Schema::Absent => None,
        Schema::Current => Some(newest()),
        Schema::Older(version) => Some(version),
    }))
}

/// What a ledger of this version lacks.
pub(super) fn behind_version(version: Option<i64>) -> Pending {
    let migrations = behind(&MIGRATIONS, version);
    let script_of = |migration: &&Migration| {
        let Migration { version, name, sql } = migration;
        format!(
            "{sql}INSERT INTO acta_migrations (version, name, applied_at)\nVALUES ({version}, '{name}', \
             CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));\n"
        )
    };
    Pending { script: migrations.iter().map(script_of).collect(), migrations }
}

pub(super) fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

fn inspect(db: &Db) -> Result<Schema> {
    let count =
        |sql: &str| -> Result<i64> { db.raw.query_row(sql, [], |row| row.get(0)).map_err(|fault| db.fault(&fault)) };
    let has_table = count("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'acta_migrations'")? > 0;
    if !has_table {
        let ours = count("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'acta_[a-z]*'")?;
        return if ours == 0 {
            Ok(Schema::Absent)
        } else {
            Err(db.unreadable("schema", "is half there: it has tables of a ledger, but no record of their version"))
        };
    }
    let read = || -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = db.raw.prepare("SELECT version, name FROM acta_migrations ORDER BY version")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let applied = read().map_err(|fault| db.fault(&fault))?;
    for (index, (version, name)) in applied.iter().enumerate() {
        match MIGRATIONS.get(index) {
            Some(known) if known.version == *version && known.name == name => {}
            _ if *version > newest() => {
                let why = format!(
                    "its schema is version {version}, newer than the {} known here; use a newer release",
                    newest()
                );
                return Err(db.unreadable("schema", why));
            }
            _ => {
                let why = format!(
                    "version {version} of its schema is {name:?}, which is not ours; is it another product's file?"
                );
                return Err(db.unreadable("schema", why));
            }
        }
    }
    match applied.last() {
        Some((version, _)) if *version == newest() => Ok(Schema::Current),
        Some((version, _)) => Ok(Schema::Older(*version)),
        None => Err(db.unreadable("schema", "is half there: its record of versions is empty")),
    }
}
