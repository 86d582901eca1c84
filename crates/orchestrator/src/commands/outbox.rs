//! `outbox`: rows of applications' databases on their way into the ledger.

use std::sync::Arc;

use acta::Ledger;
use acta::outbox::{self, Dialect, Quarantined, Relay, Source, Standing, TableName, Which};
use acta_core::Timestamp;
use anyhow::Result;
use serde::Serialize;

use crate::args::{
    DdlArgs, Kind, OutboxCommand, QuarantineArgs, QuarantineCommand, RelayArgs, ReleaseArgs, SourceArgs,
};
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::robot::Interrupts;
use crate::settings::Settings;

pub(crate) async fn outbox(settings: &Settings, printer: &Printer, command: OutboxCommand) -> Result<Exit> {
    match command {
        OutboxCommand::Ddl(args) => ddl(printer, &args),
        OutboxCommand::Relay(args) => relay(settings, printer, &args).await,
        OutboxCommand::Status(args) => status(printer, &args).await,
        OutboxCommand::Quarantine(QuarantineCommand::List(args)) => list(printer, &args).await,
        OutboxCommand::Quarantine(QuarantineCommand::Requeue(args)) => release(settings, printer, &args, true).await,
        OutboxCommand::Quarantine(QuarantineCommand::Discard(args)) => release(settings, printer, &args, false).await,
    }
}

fn ddl(printer: &Printer, args: &DdlArgs) -> Result<Exit> {
    let dialect = match args.kind {
        Kind::Mysql => Dialect::Mysql,
        Kind::Postgres => Dialect::Postgres,
        Kind::Sqlite => Dialect::Sqlite,
    };
    for line in dialect.ddl(&TableName::new(&args.table)?).lines() {
        printer.line(line)?;
    }
    Ok(Exit::Done)
}

fn open(args: &SourceArgs) -> Result<Vec<Arc<dyn Source>>> {
    let table = TableName::new(&args.table)?;
    args.sources.iter().map(|source| Ok(outbox::open(source, &table)?)).collect()
}

async fn relay(settings: &Settings, printer: &Printer, args: &RelayArgs) -> Result<Exit> {
    let sources = open(&args.sources)?;
    let mut interrupts = Interrupts::listen()?;
    let store = settings.open_or_make().await?;
    let ledger = Ledger::by_clock(store, Arc::clone(settings.clock()));
    for source in &sources {
        // What is wrong from the beginning is told at once; later it is waited for.
        source.id().await?;
    }
    let relay =
        sources.into_iter().fold(Relay::new(&ledger).hold(args.hold).until_idle(args.until_idle), Relay::source);
    printer.news(if args.until_idle { "carrying what is there" } else { "carrying; interrupt to end" });
    relay.run(interrupts.next()).await?;
    printer.news("ended: what was taken is delivered or given back");
    Ok(Exit::Done)
}

/// How an outbox stands, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'s> {
    source: &'s str,
    pending: u64,
    taken: u64,
    parked: u64,
    deferred: u64,
    quarantined: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Timestamp>,
    lag_ms: i64,
}

impl<'s> Status<'s> {
    fn of(source: &'s str, standing: &Standing) -> Self {
        Self {
            source,
            pending: standing.pending,
            taken: standing.taken,
            parked: standing.parked,
            deferred: standing.deferred,
            quarantined: standing.quarantined,
            oldest: standing.oldest,
            lag_ms: standing.oldest.map_or(0, |oldest| standing.now.since_ms(oldest).max(0)),
        }
    }
}

/// An address without what nobody else is to read.
fn shown(source: &str) -> String {
    match (source.split_once("://"), source.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => source.to_owned(),
    }
}

async fn status(printer: &Printer, args: &SourceArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    for (source, name) in open(args)?.iter().zip(&args.sources) {
        let name = shown(name);
        let standing = source.standing().await?;
        let status = Status::of(&name, &standing);
        if printer.is_json() {
            printer.json(&status)?;
            continue;
        }
        let waiting = status.pending + status.taken + status.parked + status.deferred;
        let lag =
            if waiting == 0 { "-".into() } else { format!("{}.{:03} s", status.lag_ms / 1_000, status.lag_ms % 1_000) };
        rows.push(vec![
            name.clone(),
            waiting.to_string(),
            status.pending.to_string(),
            status.taken.to_string(),
            status.parked.to_string(),
            status.deferred.to_string(),
            lag,
            status.quarantined.to_string(),
        ]);
    }
    if !printer.is_json() {
        let headings = ["SOURCE", "WAITING", "PENDING", "TAKEN", "PARKED", "DEFERRED", "OLDEST", "QUARANTINED"];
        printer.table(&headings, &rows)?;
    }
    Ok(Exit::Done)
}

/// A row in quarantine, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'r> {
    id: i64,
    message: &'r str,
    namespace: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<&'r str>,
    payload: &'r str,
    refusals: u32,
    staged_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'r str>,
}

async fn found(args: &QuarantineArgs) -> Result<(Arc<dyn Source>, Vec<Quarantined>)> {
    let source = outbox::open(&args.source, &TableName::new(&args.table)?)?;
    let namespace = args.queue.namespace()?.map(|namespace| namespace.to_string());
    let which = Which { namespace, lane: args.lane.clone(), ids: args.ids.clone(), after: 0, limit: args.limit.into() };
    let rows = source.quarantined(&which).await?;
    Ok((source, rows))
}

fn print(printer: &Printer, rows: &[Quarantined]) -> Result<()> {
    if printer.is_json() {
        for Quarantined { row, staged_at, quarantined_at, fault } in rows {
            printer.json(&Row {
                id: row.id,
                message: &row.message,
                namespace: &row.namespace,
                name: row.name.as_deref(),
                lane: row.lane.as_deref(),
                payload: &row.payload,
                refusals: row.refusals,
                staged_at: *staged_at,
                quarantined_at: *quarantined_at,
                reason: fault.as_deref(),
            })?;
        }
        return Ok(());
    }
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let row = |of: &Quarantined| {
        vec![
            of.row.id.to_string(),
            of.row.namespace.clone(),
            or_none(&of.row.lane),
            of.staged_at.to_string(),
            or_none(&of.fault),
        ]
    };
    printer.table(&["ROW", "QUEUE", "LANE", "STAGED", "REASON"], &rows.iter().map(row).collect::<Vec<_>>())
}

async fn list(printer: &Printer, args: &QuarantineArgs) -> Result<Exit> {
    let (_, rows) = found(args).await?;
    if rows.is_empty() {
        printer.complain("nothing is in quarantine, of what was asked for");
        return Ok(Exit::Done);
    }
    print(printer, &rows)?;
    if rows.len() >= usize::from(args.limit) {
        printer.complain(&format!("these are the first {}; --limit shows more", args.limit));
    }
    Ok(Exit::Done)
}

async fn release(settings: &Settings, printer: &Printer, args: &ReleaseArgs, again: bool) -> Result<Exit> {
    let (source, rows) = found(&args.which).await?;
    if rows.is_empty() {
        return Err(Fault::new(Exit::NotFound, "nothing is in quarantine, of what was asked for").into());
    }
    let what = if again { "delivered again" } else { "removed for good" };
    if args.dry_run || !args.yes {
        print(printer, &rows)?;
        let count = rows.len();
        if args.dry_run {
            printer.complain(&format!("{count} would be {what}; nothing was changed"));
            return Ok(Exit::Done);
        }
        let fault = Fault::new(Exit::Usage, format!("{count} would be {what}; nothing was changed"));
        return Err(fault.hint("say --yes to do it").into());
    }
    let ledger = Ledger::by_clock(settings.open_or_make().await?, Arc::clone(settings.clock()));
    let released = if again {
        outbox::requeue(&ledger, source.as_ref(), &rows).await?
    } else {
        outbox::discard(&ledger, source.as_ref(), &rows).await?
    };
    printer.complain(&format!("{} {what}", released.done));
    if released.arrived > 0 {
        printer.complain(&format!("{} had arrived in the ledger after all, and went", released.arrived));
    }
    Ok(Exit::Done)
}
