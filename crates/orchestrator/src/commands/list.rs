//! `jobs list`

use acta_core::store::{Found, JobFilter};
use acta_core::{Error, Item, Label, Span, Timestamp};
use anyhow::Result;

use crate::args::ListArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn list(settings: &Settings, printer: &mut Printer, args: &ListArgs) -> Result<Exit> {
    let label = |what, text: &Option<String>| text.as_deref().map(|text| Label::new(what, text)).transpose();
    let filter = JobFilter {
        namespace: args.queue.namespace()?,
        status: args.status.clone(),
        lane: label("lane", &args.lane)?,
        key: label("key", &args.key)?,
        since: args.since.as_deref().map(|text| instant(text, settings.now())).transpose()?,
        after_row: None,
        limit: usize::from(args.limit),
    };
    filter.check()?;
    let page = settings.open()?.jobs(filter).await?;
    if printer.is_json() {
        for found in &page.jobs {
            printer.json(&Item::new(&found.namespace, &found.job))?;
        }
        return Ok(Exit::Done);
    }
    if page.jobs.is_empty() {
        printer.complain("no such jobs");
        return Ok(Exit::Done);
    }
    printer.table(
        &["ID", "STATUS", "STATE", "ATTEMPTS", "LANE", "KEY", "CLAIMED BY", "CREATED", "TOOK"],
        page.jobs.iter().map(row).collect(),
    )?;
    if page.next.is_some() {
        printer.complain(&format!("these are the newest {}; --limit shows more, the filters fewer", args.limit));
    }
    Ok(Exit::Done)
}

/// An instant, or a time before now.
fn instant(text: &str, now: Timestamp) -> Result<Timestamp> {
    if let Ok(span) = text.parse::<Span>() {
        return Ok(now.plus_ms(-span.as_millis()));
    }
    text.parse().map_err(|_| {
        let why = "is neither an instant like 2026-10-03T09:12:00Z nor a while like 2h";
        Error::invalid("--since", text, why).into()
    })
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
        item.state.map_or("-", acta_core::State::word).into(),
        format!("{}/{}", item.attempts, item.max_attempts),
        or_none(item.lane),
        or_none(item.key),
        or_none(item.claimed_by),
        item.created_at.to_string(),
        took,
    ]
}
