//! `jobs list`

use acta_core::store::Found;
use acta_core::{Item, Label};
use anyhow::Result;

use crate::args::ListArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn list(settings: &Settings, printer: &mut Printer, args: &ListArgs) -> Result<Exit> {
    let limit = usize::from(args.limit);
    // One more than is shown tells whether there are more.
    let filter = args.which.filter(settings, limit + 1)?;
    let mut page = settings.open(printer).await?.jobs(filter).await?;
    let are_more = page.jobs.len() > limit || (page.jobs.len() == limit && page.next.is_some());
    page.jobs.truncate(limit);
    if printer.is_json() {
        for found in &page.jobs {
            printer.json(&Item::new(&found.namespace, &found.job))?;
        }
        return Ok(super::unreadable(printer, &page.unreadable));
    }
    if page.jobs.is_empty() {
        printer.complain("no such jobs");
        return Ok(super::unreadable(printer, &page.unreadable));
    }
    printer.table(
        &["ID", "STATUS", "STATE", "ATTEMPTS", "LANE", "KEY", "CLAIMED BY", "CREATED", "TOOK"],
        &page.jobs.iter().map(row).collect::<Vec<_>>(),
    )?;
    if are_more {
        printer.complain(&format!("these are the newest {}; --limit shows more, the filters fewer", args.limit));
    }
    Ok(super::unreadable(printer, &page.unreadable))
}

/// The ledger's own state where it says more, and whether the job is held back.
fn state(item: &Item) -> String {
    let state = item.state.map_or("-", acta_core::State::word);
    match (item.paused, item.cancel_requested) {
        (Some(true), _) => format!("{state}, paused"),
        (_, Some(true)) => format!("{state}, to stop"),
        _ => state.to_owned(),
    }
}

fn row(found: &Found) -> Vec<String> {
    let item = Item::new(&found.namespace, &found.job);
    let or_none = |label: Option<Label>| label.map_or_else(|| "-".into(), |label| label.to_string());
    let took = match (item.claimed_at, item.finished_at) {
        (Some(start), Some(end)) => super::show::seconds(end.since_ms(start)),
        _ => "-".into(),
    };
    vec![
        item.id.to_string(),
        item.status.into(),
        state(&item),
        format!("{}/{}", item.attempts, item.max_attempts),
        or_none(item.lane),
        or_none(item.key),
        or_none(item.claimed_by),
        item.created_at.to_string(),
        took,
    ]
}
