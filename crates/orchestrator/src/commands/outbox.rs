//! `outbox`: rows of applications' databases on their way into the ledger.

use std::sync::Arc;

use acta::Ledger;
use acta::outbox::{self, Dialect, Discarded, Quarantined, Relay, Source, Standing, TableName, Which, Why};
use acta_core::Timestamp;
use anyhow::Result;
use serde::Serialize;

use crate::args::{
    DdlArgs, DiscardArgs, Kind, OutboxCommand, QuarantineArgs, QuarantineCommand, QuarantineListArgs, RelayArgs,
    ReleaseArgs, SourceArgs,
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
        OutboxCommand::Quarantine(QuarantineCommand::Requeue(args)) => release(settings, printer, &args, None).await,
        OutboxCommand::Quarantine(QuarantineCommand::Discard(DiscardArgs { release: args, why })) => {
            let why = Why { actor: why.actor.filter(|actor| !actor.is_empty()), reason: why.reason };
            release(settings, printer, &args, Some(why)).await
        }
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
    printer.news("ended: what was in hand is delivered");
    Ok(Exit::Done)
}

/// How an outbox stands, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'s> {
    source: &'s str,
    pending: u64,
    parked: u64,
    deferred: u64,
    quarantined: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Timestamp>,
    lag_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<&'s str>,
}

impl<'s> Status<'s> {
    fn of(source: &'s str, standing: &'s Standing) -> Self {
        Self {
            source,
            pending: standing.pending,
            parked: standing.parked,
            deferred: standing.deferred,
            quarantined: standing.quarantined,
            oldest: standing.oldest,
            lag_ms: standing.oldest.map_or(0, |oldest| standing.now.since_ms(oldest).max(0)),
            relay: standing.relay.as_ref().map(|(relay, _)| relay.as_str()),
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
        let waiting = status.pending + status.parked + status.deferred;
        let lag =
            if waiting == 0 { "-".into() } else { format!("{}.{:03} s", status.lag_ms / 1_000, status.lag_ms % 1_000) };
        rows.push(vec![
            name.clone(),
            waiting.to_string(),
            status.pending.to_string(),
            status.parked.to_string(),
            status.deferred.to_string(),
            lag,
            status.quarantined.to_string(),
            or_none(status.relay),
        ]);
    }
    if !printer.is_json() {
        let headings = ["SOURCE", "WAITING", "PENDING", "PARKED", "DEFERRED", "OLDEST", "QUARANTINED", "RELAY"];
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

fn which(args: &QuarantineArgs) -> Result<Which> {
    let namespace = args.queue.namespace()?.map(|namespace| namespace.to_string());
    Ok(Which { namespace, lane: args.lane.clone(), ids: args.ids.clone(), after: 0, limit: args.limit.into() })
}

async fn found(args: &QuarantineArgs) -> Result<(Arc<dyn Source>, Vec<Quarantined>)> {
    let source = outbox::open(&args.source, &TableName::new(&args.table)?)?;
    let rows = source.quarantined(&which(args)?).await?;
    Ok((source, rows))
}

impl<'r> Row<'r> {
    fn of(Quarantined { row, quarantined_at, fault }: &'r Quarantined) -> Self {
        Self {
            id: row.id,
            message: &row.message,
            namespace: &row.namespace,
            name: row.name.as_deref(),
            lane: row.lane.as_deref(),
            payload: &row.payload,
            refusals: row.refusals,
            staged_at: row.staged_at,
            quarantined_at: *quarantined_at,
            reason: fault.as_deref(),
        }
    }
}

/// A row that was discarded, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Gone<'r> {
    #[serde(flatten)]
    row: Row<'r>,
    discarded_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    discarded_by: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discarded_because: Option<&'r str>,
}

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or("-").into()
}

fn print(printer: &Printer, rows: &[Quarantined]) -> Result<()> {
    if printer.is_json() {
        return rows.iter().try_for_each(|row| printer.json(&Row::of(row)));
    }
    let row = |of: &Quarantined| {
        vec![
            of.row.id.to_string(),
            of.row.namespace.clone(),
            or_none(of.row.lane.as_deref()),
            of.row.staged_at.to_string(),
            or_none(of.fault.as_deref()),
        ]
    };
    printer.table(&["ROW", "QUEUE", "LANE", "STAGED", "REASON"], &rows.iter().map(row).collect::<Vec<_>>())
}

fn print_discarded(printer: &Printer, rows: &[Discarded]) -> Result<()> {
    if printer.is_json() {
        return rows.iter().try_for_each(|Discarded { quarantined, discarded_at, why }| {
            printer.json(&Gone {
                row: Row::of(quarantined),
                discarded_at: *discarded_at,
                discarded_by: why.actor.as_deref(),
                discarded_because: why.reason.as_deref(),
            })
        });
    }
    let row = |Discarded { quarantined: of, discarded_at, why }: &Discarded| {
        vec![
            of.row.id.to_string(),
            of.row.namespace.clone(),
            or_none(of.row.lane.as_deref()),
            or_none(of.fault.as_deref()),
            discarded_at.to_string(),
            or_none(why.actor.as_deref()),
            or_none(why.reason.as_deref()),
        ]
    };
    let headings = ["ROW", "QUEUE", "LANE", "REASON", "DISCARDED", "BY", "BECAUSE"];
    printer.table(&headings, &rows.iter().map(row).collect::<Vec<_>>())
}

async fn list(printer: &Printer, args: &QuarantineListArgs) -> Result<Exit> {
    let (count, none) = if args.discarded {
        let source = outbox::open(&args.which.source, &TableName::new(&args.which.table)?)?;
        let rows = source.discarded(&which(&args.which)?).await?;
        if !rows.is_empty() {
            print_discarded(printer, &rows)?;
        }
        (rows.len(), "nothing was discarded")
    } else {
        let (_, rows) = found(&args.which).await?;
        if !rows.is_empty() {
            print(printer, &rows)?;
        }
        (rows.len(), "nothing is in quarantine")
    };
    if count == 0 {
        printer.complain(&format!("{none}, of what was asked for"));
    } else if count >= usize::from(args.which.limit) {
        printer.complain(&format!("these are the first {}; --limit shows more", args.which.limit));
    }
    Ok(Exit::Done)
}

async fn release(settings: &Settings, printer: &Printer, args: &ReleaseArgs, gone: Option<Why>) -> Result<Exit> {
    let (source, rows) = found(&args.which).await?;
    if rows.is_empty() {
        return Err(Fault::new(Exit::NotFound, "nothing is in quarantine, of what was asked for").into());
    }
    let what = if gone.is_none() { "delivered again" } else { "removed for good" };
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
    let released = match gone {
        None => outbox::requeue(&ledger, source.as_ref(), &rows).await?,
        Some(why) => outbox::discard(&ledger, source.as_ref(), &rows, &why).await?,
    };
    printer.complain(&format!("{} {what}", released.done));
    if released.arrived > 0 {
        printer.complain(&format!("{} had arrived in the ledger after all, and went", released.arrived));
    }
    Ok(Exit::Done)
}
