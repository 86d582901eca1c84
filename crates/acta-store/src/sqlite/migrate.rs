//! The schema's versions.

use acta_core::{Result, Timestamp};

use super::connection::Db;

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

/// Append only: a migration that was released is never changed.
const MIGRATIONS: [Migration; 1] =
    [Migration { version: 1, name: "ledger", sql: include_str!("sql/migrations/0001_ledger.sql") }];

/// What is in a file.
enum Schema {
    Absent,
    Current,
    Older(i64),
}

/// Makes an absent ledger; accepts a current one; refuses any other.
///
/// The caller holds the write lock for an absent one: the whole schema is one transaction, so that it is never half there.
pub(super) fn create_or_accept(db: &Db, now: Timestamp) -> Result<()> {
    match inspect(db)? {
        Schema::Current => Ok(()),
        Schema::Older(version) => {
            let why =
                format!("its schema is version {version}; `orchestrator migrate` brings it to version {}", newest());
            Err(db.unreadable("schema", why))
        }
        Schema::Absent => {
            db.command("BEGIN IMMEDIATE")?;
            // Another process may have made it while this one waited.
            let made = match inspect(db) {
                Ok(Schema::Absent) => create(db, now),
                Ok(_) => Ok(()),
                Err(fault) => Err(fault),
            };
            match made {
                Ok(()) => db.command("COMMIT"),
                Err(fault) => {
                    db.command("ROLLBACK")?;
                    Err(fault)
                }
            }
        }
    }
}

fn create(db: &Db, now: Timestamp) -> Result<()> {
    for Migration { version, name, sql } in MIGRATIONS {
        let run = || {
            db.raw.execute_batch(sql)?;
            db.raw.execute(
                "INSERT INTO acta_migrations (version, name, applied_at) VALUES (?1, ?2, ?3)",
                (version, name, now.as_millis()),
            )
        };
        run().map_err(|fault| db.fault(&fault))?;
        crate::failpoint::failpoint("migrate");
    }
    Ok(())
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
