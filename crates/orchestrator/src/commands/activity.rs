//! Who works on a queue, and how much happens there.

use acta_core::vitals::{Activity, Flow, Minute, WorkerView};
use acta_core::{State, Timestamp};
use anyhow::Result;
use serde::Serialize;

use crate::printer::Printer;

/// The same for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told<'a> {
    at: Timestamp,
    rates: Rates,
    minutes: &'a [Minute],
    workers: &'a [WorkerView],
}

/// What happened lately. The last hour is the present minute and those before it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rates {
    this_minute: Flow,
    last_minute: Flow,
    last_hour: Flow,
}

impl Rates {
    fn of(activity: &Activity) -> Self {
        Self { this_minute: activity.over(0, 1), last_minute: activity.over(1, 1), last_hour: activity.over(0, 60) }
    }
}

pub(super) fn told(activity: &Activity) -> Told<'_> {
    let Activity { at, workers, minutes } = activity;
    Told { at: *at, rates: Rates::of(activity), minutes, workers }
}

/// Prints what there is.
pub(super) fn print(printer: &Printer, activity: &Activity) -> Result<()> {
    let rates = Rates::of(activity);
    if !rates.last_hour.is_nothing() {
        printer.line("")?;
        let rows = [
            row("this minute", rates.this_minute),
            row("last minute", rates.last_minute),
            row("last hour", rates.last_hour),
        ];
        let ends = [State::Succeeded, State::Failed, State::Cancelled].map(|state| state.word().to_ascii_uppercase());
        printer.table(&["IN THE", "ADDED", "CLAIMED", &ends[0], &ends[1], &ends[2]], &rows)?;
    }
    if !activity.workers.is_empty() {
        printer.line("")?;
        let rows: Vec<_> = activity.workers.iter().map(worker).collect();
        printer.table(&["WORKER", "IS", "RUNS", "HOST", "PID", "VERSION", "SINCE", "SEEN"], &rows)?;
    }
    Ok(())
}

fn row(name: &str, flow: Flow) -> Vec<String> {
    let Flow { added, claimed, succeeded, failed, cancelled } = flow;
    let counts = [added, claimed, succeeded, failed, cancelled].map(|count| count.to_string());
    std::iter::once(name.to_owned()).chain(counts).collect()
}

fn worker(view: &WorkerView) -> Vec<String> {
    let WorkerView { worker, lost } = view;
    let card = &worker.card;
    vec![
        card.robot.to_string(),
        if *lost { "lost" } else { "here" }.into(),
        format!("{} of {}", card.running, card.concurrency),
        card.host.to_string(),
        card.pid.to_string(),
        card.version.to_string(),
        worker.started_at.to_string(),
        worker.seen_at.to_string(),
    ]
}
