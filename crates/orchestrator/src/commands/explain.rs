//! `jobs explain`

use acta_core::explain::{Explanation, Reason};
use anyhow::Result;

use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn explain(settings: &Settings, printer: &mut Printer, id: &str) -> Result<Exit> {
    let (store, found) = super::find(settings, printer, id).await?;
    let told = store.explain(found.job.identity.id).await?;
    if printer.is_json() {
        printer.json(&told)?;
        return Ok(Exit::Done);
    }
    printer.line(&format!("{} is {}: {}", told.id, told.state, reason(&told)))?;
    if let Some(since) = told.since {
        printer.line(&format!("since    {since}"))?;
    }
    if let Some(until) = told.until {
        printer.line(&format!("until    {until}"))?;
    }
    if let Some(blocker) = &told.blocker {
        let mut text = format!("blocker  {}, {}", blocker.id, blocker.state);
        let mut add = |before: &str, value: Option<String>| {
            text.extend(value.map(|value| format!("{before}{value}")));
        };
        add(", held by ", blocker.holder.as_ref().map(ToString::to_string));
        add(" since ", blocker.since.map(|since| since.to_string()));
        add(" until ", blocker.until.map(|until| until.to_string()));
        add(", paused", blocker.paused.then(String::new));
        printer.line(&text)?;
    }
    printer.line(&format!("advice   {}", told.advice))?;
    Ok(Exit::Done)
}

fn reason(told: &Explanation) -> &'static str {
    match told.reason {
        Reason::Next => "it is the next to be claimed",
        Reason::BehindOthers => "other candidates come before it",
        Reason::BehindHead => "the head of its lane comes before it",
        Reason::QueuePaused => "its queue is paused",
        Reason::LanePaused => "its lane is paused",
        Reason::Paused => "it is paused",
        Reason::Deferred => "its time has not come",
        Reason::WaitingForSignal => "it waits for a signal",
        Reason::Expired => "it has expired",
        Reason::Held => "a robot has it",
        Reason::LeaseLapsed => "its robot let the lease lapse",
        Reason::Ended => "it has ended",
    }
}
