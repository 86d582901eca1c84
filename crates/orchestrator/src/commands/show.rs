//! `jobs show`

use acta_core::history::Entry;
use acta_core::{Item, Json, Timestamp};
use anyhow::Result;

use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn show(settings: &Settings, printer: &mut Printer, id: &str) -> Result<Exit> {
    let (store, found) = super::find(settings, printer, id).await?;
    let item = Item::new(&found.namespace, &found.job);
    if printer.is_json() {
        printer.json(&item)?;
        return Ok(Exit::Done);
    }
    let history = store.history(item.id.clone()).await?;
    for (name, value) in lines(&found.namespace.to_string(), &item) {
        printer.line(&format!("{name:<12} {value}"))?;
    }
    for entry in &history {
        printer.line(&format!("{:<12} {}", "history", happening(entry)))?;
    }
    Ok(Exit::Done)
}

fn lines(namespace: &str, item: &Item) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut add = |name, value: Option<String>| {
        if let Some(value) = value {
            lines.push((name, value));
        }
    };
    let when = |instant: Option<Timestamp>| instant.map(|instant| instant.to_string());
    add("id", Some(item.id.to_string()));
    add("in", Some(namespace.to_owned()));
    let status = match item.state {
        Some(state) => format!("{} ({state})", item.status),
        None => item.status.to_owned(),
    };
    add("status", Some(status));
    add("flags", flags(item));
    add("name", item.name.as_ref().map(ToString::to_string));
    add("lane", item.lane.as_ref().map(ToString::to_string));
    add("key", item.key.as_ref().map(ToString::to_string));
    add("dedup key", item.dedup_key.as_ref().map(ToString::to_string));
    add("trace", item.traceparent.as_ref().map(ToString::to_string));
    add("priority", item.priority.map(|priority| priority.to_string()));
    let retry = if item.retryable { "" } else { ", not retryable" };
    add("attempts", Some(format!("{} of {}{retry}", item.attempts, item.max_attempts)));
    add("claimed by", item.claimed_by.as_ref().map(ToString::to_string));
    add("fence", item.fence.map(|fence| fence.to_string()));
    add("lost leases", item.lost_leases.map(|lost| lost.to_string()));
    add("created", Some(item.created_at.to_string()));
    add("run at", when(item.run_at));
    add("expires", when(item.expires_at));
    add("claimed", when(item.claimed_at));
    add("started", when(item.started_at));
    add("lease until", when(item.lease_expires_at));
    add("finished", when(item.finished_at));
    let took = item.claimed_at.zip(item.finished_at).map(|(start, end)| seconds(end.since_ms(start)));
    add("took", took);
    add("progress", item.progress.clone());
    add("payload", Some(on_a_line(&item.payload)));
    add("output", item.output.as_ref().map(on_a_line));
    if let Some(exception) = &item.exception {
        let code = exception.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
        let kind = format!("{:?}", exception.kind).to_lowercase();
        add("exception", Some(format!("{kind}{code}: {}", exception.message)));
        add("details", exception.details.as_ref().map(on_a_line));
    }
    lines
}

/// A line break can only stand between tokens, where a space means the same.
fn on_a_line(json: &Json) -> String {
    json.as_str().replace(['\n', '\r'], " ")
}

fn flags(item: &Item) -> Option<String> {
    let mut flags = Vec::new();
    if item.paused == Some(true) {
        flags.push("paused".to_owned());
    }
    if item.cancel_requested == Some(true) {
        flags.push("cancel requested".to_owned());
    }
    if let Some(wait) = &item.wait {
        flags.push(format!("waits for the signal {}", wait.signal));
    }
    (!flags.is_empty()).then(|| flags.join(", "))
}

fn happening(entry: &Entry) -> String {
    let mut text = format!("{} {}", entry.at, words(&format!("{:?}", entry.event)));
    let mut add = |name: &str, value: Option<String>| {
        text.extend(value.map(|value| format!(", {name} {value}")));
    };
    add("claim", entry.fence.map(|fence| fence.to_string()));
    add("by", entry.actor.as_ref().map(ToString::to_string));
    add("again at", entry.run_at.map(|at| at.to_string()));
    add("because", entry.reason.clone());
    add("exception", entry.exception.as_ref().map(ToString::to_string));
    text
}

/// `LeaseLost` as `lease lost`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

/// A while in seconds, for people.
pub(crate) fn seconds(millis: i64) -> String {
    format!("{}.{:03} s", millis / 1_000, (millis % 1_000).abs())
}
