//! `cargo bench -p benches --bench postgres`: the ledger in PostgreSQL beside the same transitions by hand and beside
//! graphile-worker, in one run.
//!
//! Words after `--` choose what is measured: `enqueue`, `drain`, `latency`, `snapshot`, `growth`. `--without-graphile`
//! leaves graphile-worker out, `--quick` the million-job ledgers; `ACTA_LONG=1` holds a snapshot while 2 million jobs pass.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use acta::Ledger;
use acta_testkit::postgres::{Database, Server};
use anyhow::Result;
use benches::postgres::graphile::{self, Graphile, How};
use benches::postgres::{growth, raw, snapshot, starts};
use benches::table::Table;
use benches::work;

const JOBS: usize = 100_000;
/// How often each drain is repeated; the best counts, on every side.
const ROUNDS: usize = 2;

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, url] = arguments.as_slice()
        && what == starts::HANDLERS
    {
        runtime.block_on(starts::run_handlers(url))?;
        return Ok(ExitCode::SUCCESS);
    }
    let failures = runtime.block_on(run(&arguments))?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(arguments: &[String]) -> Result<usize> {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()));
    let compares = !has(graphile::WITHOUT) && (is_wanted("drain") || is_wanted("latency"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("graphile-worker");
    let graphile = if compares { Some(Graphile::install(&folder)?) } else { None };

    println!("raw:\n{};\n{};\n{};\n{};\n", raw::TABLE, raw::INSERT, raw::CLAIM, raw::SETTLE);
    let server = Server::start(&["shared_buffers=1GB", "max_wal_size=8GB"]);
    let base = server.url("postgres");
    let mut table = Table::begin();
    if is_wanted("enqueue") {
        enqueue(&base, &mut table).await?;
    }
    if is_wanted("drain") {
        drain(&base, &mut table, graphile.as_ref()).await?;
    }
    if is_wanted("latency") {
        latency(&base, &mut table, graphile.as_ref()).await?;
    }
    if is_wanted("snapshot") {
        let jobs = if std::env::var_os("ACTA_LONG").is_some() { 2_000_000 } else { 200_000 };
        snapshot::measure(&base, &mut table, jobs).await?;
    }
    if is_wanted("growth") && !has("--quick") {
        growth::measure(&base, &mut table).await?;
    }
    Ok(table.failures())
}

fn payload() -> String {
    format!("\"{}\"", "x".repeat(198))
}

async fn enqueue(base: &str, table: &mut Table) -> Result<()> {
    let (theirs, ours) = (Database::new(base, None), Database::new(base, None));
    raw::make(&theirs.url()).await?;
    let opened = Ledger::open(&ours.url()).await?;
    work::insert(&opened, 5_000, 1_000, 0).await?;
    let by_hand = raw::insert(&theirs.url(), JOBS, 1_000, &payload()).await?;
    let took = work::insert(&opened, JOBS, 1_000, 0).await?;
    table.rate("enqueue, 1000 a call", JOBS, took, by_hand, 0.4);
    let by_hand = raw::insert_singly(&theirs.url(), 32_000, 16, &payload()).await?;
    let took = work::insert_singly(&opened, 32_000, 16).await?;
    table.rate("enqueue singly, 16 tasks (raw: 16 connections)", 32_000, took, by_hand, 1.5);
    Ok(())
}

async fn drain(base: &str, table: &mut Table, graphile: Option<&Graphile>) -> Result<()> {
    let by_hand = best_by_hand(base).await?;
    let plain = best_of_ours(base, "drain", 0).await?;
    table.rate("drain, beside raw", JOBS, plain, by_hand, 0.75);
    if let Some(graphile) = graphile {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(graphile.drain(base, JOBS).await?);
        }
        let theirs = times.into_iter().min().unwrap_or(Duration::MAX);
        table.rate("drain, beside graphile-worker", JOBS, plain, theirs, 1.25);
    }
    let laned = best_of_ours(base, "drain, 1000 lanes", 1_000).await?;
    table.rate("drain, 1000 lanes, beside raw without lanes", JOBS, laned, by_hand, 0.4);
    Ok(())
}

async fn best_by_hand(base: &str) -> Result<Duration> {
    let theirs = Database::new(base, None);
    let mut best = Duration::MAX;
    for connections in [1, 2, 4].repeat(ROUNDS) {
        raw::make(&theirs.url()).await?;
        raw::insert(&theirs.url(), JOBS, 1_000, &payload()).await?;
        best = best.min(raw::drain(&theirs.url(), connections, 100).await?);
    }
    Ok(best)
}

async fn best_of_ours(base: &str, what: &str, lanes: usize) -> Result<Duration> {
    let mut best = Duration::MAX;
    for (workers, concurrency) in [(1, 1_000), (2, 1_000), (4, 1_000), (16, 100)].repeat(ROUNDS) {
        let ours = Database::new(base, None);
        let opened = Ledger::open(&ours.url()).await?;
        work::insert(&opened, JOBS, 1_000, lanes).await?;
        let took = work::drain(JOBS, workers, concurrency, async || Ok(Ledger::open(&ours.url()).await?)).await?;
        Table::note(&format!("  {what}, {workers} workers of {concurrency}"), JOBS, took);
        best = best.min(took);
    }
    Ok(best)
}

async fn latency(base: &str, table: &mut Table, graphile: Option<&Graphile>) -> Result<()> {
    const TIMES: usize = 200;
    let (median, nearly_all) = (TIMES / 2, TIMES * 99 / 100);
    let ours = starts::ours(&Database::new(base, None), TIMES).await?;
    println!("  idle enqueue to handler start: p50 {:.1?}, p99 {:.1?}", ours[median], ours[nearly_all]);
    let Some(graphile) = graphile else { return Ok(()) };
    let mut best = Duration::MAX;
    for how in [How::Plain, How::Batching] {
        let theirs = starts::theirs(graphile, &Database::new(base, None), how, TIMES).await?;
        println!("  graphile-worker, {how:?}: p50 {:.1?}, p99 {:.1?}", theirs[median], theirs[nearly_all]);
        best = best.min(theirs[median]);
    }
    table.time("idle enqueue to start, beside graphile-worker", ours[median], best, 0.4);
    Ok(())
}
