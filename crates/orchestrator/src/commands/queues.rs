//! `queues`

use std::collections::BTreeMap;

use acta_core::job::Tally;
use acta_core::rows::{Queue, Tallies};
use acta_core::store::{Hold, QueueFilter};
use acta_core::vitals::Activity;
use acta_core::{Error, Namespace, QueueSettings, State};
use anyhow::Result;
use serde::Serialize;

use super::{act, activity};
use crate::args::{QueueArgs, QueueWhyArgs, QueuesCommand};
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn queues(settings: &Settings, printer: &mut Printer, command: QueuesCommand) -> Result<Exit> {
    match command {
        QueuesCommand::List => list(settings, printer).await,
        QueuesCommand::Show(args) => show(settings, printer, &args).await,
        QueuesCommand::Pause(args) => hold(settings, printer, &args, true).await,
        QueuesCommand::Resume(args) => hold(settings, printer, &args, false).await,
    }
}

/// A queue, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    namespace: &'a Namespace,
    paused: bool,
    settings: &'a QueueSettings,
    /// By the family's words.
    statuses: BTreeMap<&'static str, u64>,
    /// By the ledger's states.
    states: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    activity: Option<activity::Told<'a>>,
}

fn told<'a>(queue: &'a Queue, tallies: &Tallies, activity: Option<&'a Activity>) -> Told<'a> {
    let (mut statuses, mut states) = (BTreeMap::new(), BTreeMap::new());
    for (Tally(state, business), count) in tallies {
        *statuses.entry(queue.namespace.family().word(*state, *business)).or_default() += count;
        *states.entry(state.word()).or_default() += count;
    }
    let activity = activity.map(activity::told);
    Told { namespace: &queue.namespace, paused: queue.paused, settings: &queue.settings, statuses, states, activity }
}

async fn list(settings: &Settings, printer: &Printer) -> Result<Exit> {
    let overview = settings.open(printer).await?.queues(QueueFilter::default()).await?;
    if printer.is_json() {
        for (queue, tallies) in &overview.queues {
            printer.json(&told(queue, tallies, None))?;
        }
    } else if overview.queues.is_empty() && overview.unreadable.is_empty() {
        printer.complain("no queues");
    } else {
        let rows: Vec<_> = overview.queues.iter().map(|(queue, tallies)| row(queue, tallies)).collect();
        printer.table(&["QUEUE", "PAUSED", "OPEN", "CLAIMED", "SUCCEEDED", "FAILED", "CANCELLED"], &rows)?;
    }
    Ok(super::unreadable(printer, &overview.unreadable))
}

fn row(queue: &Queue, tallies: &Tallies) -> Vec<String> {
    let count = |is_it: fn(State) -> bool| {
        let counts = tallies.iter().filter(|(Tally(state, _), _)| is_it(*state)).map(|(_, count)| count);
        counts.sum::<u64>().to_string()
    };
    vec![
        queue.namespace.to_string(),
        if queue.paused { "yes" } else { "-" }.into(),
        count(|state| !state.is_final() && !state.is_held()),
        count(State::is_held),
        count(|state| state == State::Succeeded),
        count(|state| state == State::Failed),
        count(|state| state == State::Cancelled),
    ]
}

async fn show(settings: &Settings, printer: &Printer, args: &QueueArgs) -> Result<Exit> {
    let namespace = args.the_namespace()?;
    let filter = QueueFilter::closely(namespace.clone());
    let overview = settings.open(printer).await?.queues(filter).await?;
    let Some((queue, tallies)) = overview.queues.iter().find(|(queue, _)| queue.namespace == namespace) else {
        let exit = super::unreadable(printer, &overview.unreadable);
        let message = Error::not_found("queue", &namespace.to_string()).to_string();
        let exit = if exit == Exit::Done { Exit::NotFound } else { exit };
        return Err(Fault::new(exit, message).hint("`queues list` shows what is there").into());
    };
    let activity = overview.activity.get(&namespace);
    let told = told(queue, tallies, activity);
    if printer.is_json() {
        printer.json(&told)?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: &str| printer.line(&format!("{name:<12} {value}"));
    line("queue", &namespace.to_string())?;
    match overview.pauses.get(&namespace) {
        Some(pause) => line("is", &pause.to_string())?,
        None => line("is", if queue.paused { "paused" } else { "open" })?,
    }
    if let Some(lease) = queue.settings.lease {
        line("lease", &lease.to_string())?;
    }
    if let Some(retention) = queue.settings.retention {
        line("retention", &retention.to_string())?;
    }
    for (state, count) in &told.states {
        line(state, &count.to_string())?;
    }
    if let Some(activity) = activity {
        activity::print(printer, activity)?;
    }
    Ok(Exit::Done)
}

async fn hold(settings: &Settings, printer: &Printer, args: &QueueWhyArgs, paused: bool) -> Result<Exit> {
    let namespace = args.queue.the_namespace()?;
    let hold = Hold {
        namespace: namespace.clone(),
        lane: None,
        paused,
        actor: act::actor(args.why.actor.as_deref())?,
        reason: args.why.reason.clone(),
    };
    settings.open(printer).await?.hold(hold).await?;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "namespace": namespace, "paused": paused }))?;
    } else {
        printer.line(&format!("{namespace} is {}", if paused { "paused" } else { "open again" }))?;
    }
    Ok(Exit::Done)
}
