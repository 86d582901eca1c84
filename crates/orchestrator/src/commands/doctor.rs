//! `doctor`: what is wrong with the ledger, and how to mend it.

use acta_core::store::{Finding, Openness, Parcel, QueueFilter};
use acta_core::{Error, Store, Timestamp, audit};
use anyhow::Result;

use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn doctor(settings: &Settings, printer: &Printer) -> Result<Exit> {
    let place = settings.address().to_string();
    let fix = "`run` or `buildout add` makes it; or name it with --root";
    let absent = || vec![Finding::new(&place, "there is no ledger", fix)];
    let findings = match settings.address().exists().await {
        Ok(false) => absent(),
        Err(fault) => vec![refused(&place, &fault.into())],
        Ok(true) => match settings.open(printer).await {
            Err(fault) => vec![refused(&place, &fault)],
            Ok(store) => look(store.as_ref(), &place, settings.now()).await?,
        },
    };
    for finding in &findings {
        if printer.is_json() {
            printer.json(finding)?;
            continue;
        }
        printer.line(&format!("{}: {}", finding.place, finding.what))?;
        printer.line(&format!("    fix: {}", finding.fix))?;
    }
    if findings.is_empty() {
        if !printer.is_json() {
            printer.line(&format!("{place} is well"))?;
        }
        return Ok(Exit::Done);
    }
    printer.complain(&format!("found: {}", findings.len()));
    Ok(Exit::Failed)
}

/// Schema, network file system, permissions, a file that is no ledger: opening it tells, and says what to do.
fn refused(place: &str, fault: &anyhow::Error) -> Finding {
    let hint = fault.downcast_ref::<Error>().and_then(Error::hint);
    Finding::new(place, format!("can't be opened: {fault:#}"), hint.unwrap_or_else(|| "as the error says".into()))
}

async fn look(store: &dyn Store, place: &str, now: Timestamp) -> Result<Vec<Finding>> {
    let mut findings = store.examine().await?;
    let overview = match store.queues(QueueFilter::default()).await {
        Ok(overview) => overview,
        Err(fault) => {
            findings.push(Finding::new("queues", fault.to_string(), "mend what is named first"));
            return Ok(findings);
        }
    };
    let mut whole = audit::Whole::default();
    for (queue, tallies) in overview.queues {
        let Parcel { contents, .. } = store.export(Some(queue.namespace.clone())).await?;
        if let Some(contents) = contents {
            findings.extend(whole.add(&contents));
            findings.extend(audit::contradictions(&contents, &tallies));
            findings.extend(audit::concerns(&contents, now));
        }
    }
    if let Ok(all) = store.export(None).await
        && let Err(Error::Closed { place, why }) = all.common.openness.check(place)
    {
        let fix = match all.common.openness {
            Openness::Arriving { .. } => "finish the copy, or give it up with --give-up and throw this ledger away",
            _ => "it can be read here, and worked with there",
        };
        findings.push(Finding::new(place, why, fix));
    }
    Ok(findings)
}
