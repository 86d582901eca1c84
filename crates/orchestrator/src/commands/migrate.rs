//! `migrate`: brings the ledger's schema to this release.

use acta_store::Address;
use acta_store::postgres::{Options, PostgresStore, Url, pending};
use anyhow::Result;

use crate::args::MigrateArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn migrate(settings: &Settings, printer: &Printer, args: &MigrateArgs) -> Result<Exit> {
    match settings.address() {
        Address::Postgres(url) => database(printer, url, args).await,
        // Their first schema is their only one yet; opening makes it, or refuses what is not it.
        address @ (Address::Sqlite(_) | Address::File(_)) => {
            if args.sql {
                printer.complain(&format!("{address} makes its own schema; there is nothing to be run by hand"));
            } else if args.dry_run && !address.exists().await? {
                printer.line(&format!("{address} would be made"))?;
            } else if args.dry_run {
                settings.open(printer).await?;
                printer.line(&format!("{address} is current"))?;
            } else {
                settings.open_or_make().await?;
                printer.line(&format!("{address} is current"))?;
            }
            Ok(Exit::Done)
        }
    }
}

async fn database(printer: &Printer, url: &Url, args: &MigrateArgs) -> Result<Exit> {
    let store = PostgresStore::new(url, Options::default())?;
    let version = store.version().await?;
    let (missing, script) = pending(version);
    if args.sql {
        if missing.is_empty() {
            printer.complain(&format!("{url} is current"));
        } else {
            printer.line(&format!("BEGIN;\n{script}COMMIT;"))?;
        }
        return Ok(Exit::Done);
    }
    let applied = if args.dry_run { missing } else { store.migrate().await? };
    let word = if args.dry_run { "would be applied" } else { "applied" };
    for migration in &applied {
        printer.line(&format!("{word}: {} {}", migration.version, migration.name))?;
    }
    if applied.is_empty() {
        printer.line(&format!("{url} is current"))?;
    }
    Ok(Exit::Done)
}
