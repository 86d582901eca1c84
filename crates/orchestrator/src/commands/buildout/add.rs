//! `buildout add`

use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use acta_core::store::{Enqueue, Enqueued, NewJob};
use acta_core::{Error, Json};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::lines::{Line, Source};
use crate::args::{AddArgs, Format};
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::settings::Settings;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    id: &'a str,
    created: bool,
    state: acta_core::State,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    payload_differs: bool,
}

pub(crate) async fn add(settings: &Settings, printer: &mut Printer, args: &AddArgs) -> Result<Exit> {
    let namespace = args.queue.the_namespace()?;
    let flags = flags(args)?;
    if args.unique && args.key.is_none() && args.from.is_none() {
        return Err(Fault::new(Exit::Usage, "--unique needs a --key to be unique by").into());
    }
    let (jobs, source) = match &args.from {
        None => (vec![flags.into_job(settings)?], None),
        Some(path) => (read(settings, path, args.format, &flags)?, Some(path.display().to_string())),
    };
    if jobs.is_empty() {
        printer.complain("there are no items in it; nothing was added");
        return Ok(Exit::Done);
    }
    let waiting = spinner(jobs.len());
    let added = settings.open_or_make().await?.enqueue(Enqueue { namespace, jobs }).await;
    waiting.finish_and_clear();
    let added = added.map_err(|fault| placed(fault, source.as_deref()))?;
    tell(printer, &added).context("all were added, but their ids could not be printed")?;
    Ok(Exit::Done)
}

fn flags(args: &AddArgs) -> Result<Line> {
    Ok(Line {
        payload: args.payload.as_deref().map(Json::new).transpose()?,
        lane: args.lane.clone(),
        key: args.key.clone(),
        unique: args.unique.then_some(true),
        max_attempts: args.max_attempts,
        retryable: args.retryable,
        run_at: args.run_at.clone(),
        expires_at: args.expires_at.clone(),
        lease: args.lease.clone(),
        priority: args.priority,
        name: args.name.clone(),
        traceparent: None,
    })
}

/// An error about one of many items names which.
fn placed(fault: Error, source: Option<&str>) -> anyhow::Error {
    match (fault, source) {
        (Error::At { index, source: inner }, Some(name)) => {
            let message = format!("{name}: item {}: {inner}", index + 1);
            Fault::new(Exit::Usage, message).hint("nothing was added; mend the file and add it again").into()
        }
        (Error::At { source: inner, .. }, None) => (*inner).into(),
        (fault, _) => fault.into(),
    }
}

fn tell(printer: &Printer, added: &[Enqueued]) -> Result<()> {
    let mut differing = 0;
    for Enqueued { id, created, state, payload_differs } in added {
        differing += usize::from(*payload_differs);
        if printer.is_json() {
            let told = Told { id: id.as_str(), created: *created, state: *state, payload_differs: *payload_differs };
            printer.json(&told)?;
        } else {
            printer.line(id.as_str())?;
        }
    }
    let duplicates = added.iter().filter(|added| !added.created).count();
    if duplicates > 0 {
        printer.complain(&format!("already there, by key: {duplicates} of {}", added.len()));
    }
    if differing > 0 {
        printer.complain(&format!("of these with another payload than the item that is there: {differing}"));
    }
    Ok(())
}

fn read(settings: &Settings, path: &Path, format: Option<Format>, open: &Line) -> Result<Vec<NewJob>> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
    if !is_stdin && let Err(fault) = std::fs::metadata(path) {
        return Err(Fault::new(Exit::Usage, format!("{name}: {fault}")).into());
    }
    let format = format.map_or_else(|| format_of(path, is_stdin), Ok)?;
    let source = Source { name: &name, settings, open };
    if is_stdin {
        if std::io::stdin().is_terminal() {
            let hint = "pipe JSON lines into it, or name a file";
            return Err(Fault::new(Exit::Usage, "the standard input is a terminal").hint(hint).into());
        }
        return parse(&source, format, std::io::stdin().lock());
    }
    let missing = |fault: std::io::Error| Fault::new(Exit::Usage, format!("{name}: {fault}"));
    let file = File::open(path).map_err(missing)?;
    let size = file.metadata().map_err(missing)?.len();
    let bar = ProgressBar::new(size).with_style(
        ProgressStyle::with_template("reading {bar:40} {bytes} of {total_bytes}")
            .unwrap_or(ProgressStyle::default_bar()),
    );
    let jobs = parse(&source, format, bar.wrap_read(file));
    bar.finish_and_clear();
    jobs
}

fn parse(source: &Source<'_>, format: Format, reader: impl Read) -> Result<Vec<NewJob>> {
    match format {
        Format::Jsonl => source.json_lines(BufReader::new(reader)),
        Format::Csv => source.csv(reader),
    }
}

fn format_of(path: &Path, is_stdin: bool) -> Result<Format> {
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    match ending.as_ref().and_then(|ending| ending.to_str()) {
        _ if is_stdin => Ok(Format::Jsonl),
        Some("jsonl" | "ndjson") => Ok(Format::Jsonl),
        Some("csv") => Ok(Format::Csv),
        _ => {
            let message = format!("{}: neither .jsonl nor .csv", path.display());
            Err(Fault::new(Exit::Usage, message).hint("say what it is with --format jsonl or --format csv").into())
        }
    }
}

/// Turns while many items are written, on a terminal.
fn spinner(count: usize) -> ProgressBar {
    if count < 1_000 {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner().with_message(format!("adding {count} items, all or none"));
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
