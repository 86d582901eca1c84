//! `migrate`: brings the ledger's schema to this release.

use anyhow::Result;

use crate::args::MigrateArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn migrate(settings: &Settings, printer: &Printer, args: &MigrateArgs) -> Result<Exit> {
    let address = settings.address();
    if args.sql {
        match address.pending().await?.script {
            script if script.is_empty() => printer.complain(&format!("{address} is current: there is nothing to run")),
            script => printer.line(&format!("BEGIN;\n{script}COMMIT;"))?,
        }
        return Ok(Exit::Done);
    }
    let (word, migrations) = if args.dry_run {
        ("would be applied", address.pending().await?.migrations)
    } else {
        ("applied", address.migrate().await?)
    };
    for migration in &migrations {
        printer.line(&format!("{word}: {} {}", migration.version, migration.name))?;
    }
    if migrations.is_empty() {
        printer.line(&format!("{address} is current"))?;
    }
    Ok(Exit::Done)
}
