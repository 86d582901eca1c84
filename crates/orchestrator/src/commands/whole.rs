//! `copy` and `backup`: the whole ledger at once.

use std::path::Path;

use acta_core::store::QueueFilter;
use acta_core::{Error, store};
use acta_store::Address;
use anyhow::Result;

use crate::args::CopyArgs;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn copy(settings: &Settings, printer: &Printer, args: &CopyArgs) -> Result<Exit> {
    let (from, to): (Address, Address) = (args.from.parse()?, args.to.parse()?);
    let (from, to) = (from.absolute(), to.absolute());
    if from == to {
        return Err(Fault::new(Exit::Usage, "--from and --to are the same ledger").into());
    }
    if !from.exists().await? {
        return Err(Fault::new(Exit::NotFound, format!("there is no ledger at {from}")).into());
    }
    let source = settings.open_at(&from).await?;
    let names = (from.to_string(), to.to_string());
    if args.give_up {
        let target = if to.exists().await? { Some(settings.open_at(&to).await?) } else { None };
        store::give_up_copy(source.as_ref(), target.as_deref(), (&names.0, &names.1)).await?;
        printer.line(&format!("{from} takes writes again"))?;
        if target.is_some() {
            printer.complain(&format!("throw {to} away: it is not whole"));
        }
        return Ok(Exit::Done);
    }
    if !to.exists().await? {
        // A copy that is refused makes nothing.
        store::may_leave(source.as_ref(), settings.now()).await?;
    }
    let target = settings.open_at(&to).await?;
    let copied = store::copy(source.as_ref(), target.as_ref(), (&names.0, &names.1), settings.now());
    let (namespaces, jobs) = copied.await?;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "from": names.0, "to": names.1, "namespaces": namespaces, "jobs": jobs }))?;
    } else {
        printer.line(&format!("copied to {to}: jobs {jobs}, namespaces {namespaces}"))?;
        printer.complain(&format!("{from} takes no more writes; --provider and --root name the new ledger"));
    }
    Ok(Exit::Done)
}

pub(crate) async fn backup(settings: &Settings, printer: &Printer, path: &Path) -> Result<Exit> {
    if !settings.address().exists().await? {
        return Err(Fault::new(Exit::NotFound, format!("there is no ledger at {}", settings.address())).into());
    }
    if path.exists() {
        let why = "is there already; a backup writes over nothing, name another folder";
        return Err(Error::invalid("path", &path.display().to_string(), why).into());
    }
    let store = settings.open(printer).await?;
    // A backup is a root: what `--root` opens.
    let file = match settings.address() {
        Address::Sqlite(_) => path.join("acta.db"),
        // A database says itself how it is backed up.
        Address::File(_) | Address::Postgres(_) => path.to_owned(),
    };
    store.backup(file).await?;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "path": path.display().to_string() }))?;
    } else {
        printer.line(&format!("{} is in {}; --root opens it", settings.address(), path.display()))?;
    }
    Ok(super::unreadable(printer, &store.queues(QueueFilter::default()).await?.unreadable))
}
