//! `cargo bench -p benches --bench postgres`: the ledger in PostgreSQL beside the same transitions by hand, in one run.

use std::process::ExitCode;

use acta::Ledger;
use acta_testkit::postgres::{Database, Server};
use anyhow::Result;
use benches::postgres::{ledger, raw};
use benches::table::Table;

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let failures = runtime.block_on(run())?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run() -> Result<usize> {
    const JOBS: usize = 100_000;
    println!("raw:\n{};\n{};\n{};\n{};\n", raw::TABLE, raw::INSERT, raw::CLAIM, raw::SETTLE);
    let server = Server::start(&["shared_buffers=1GB", "max_wal_size=8GB"]);
    let base = server.url("postgres");
    let payload = format!("\"{}\"", "x".repeat(198));
    let mut table = Table::begin();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()));

    if is_wanted("enqueue") {
        let (theirs, ours) = (Database::new(&base, None), Database::new(&base, None));
        raw::make(&theirs.url()).await?;
        let opened = Ledger::open(&ours.url()).await?;
        ledger::insert(&opened, 5_000, 1_000, 0).await?;
        let by_hand = raw::insert(&theirs.url(), JOBS, 1_000, &payload).await?;
        let took = ledger::insert(&opened, JOBS, 1_000, 0).await?;
        table.rate("enqueue, 1000 a call", JOBS, took, by_hand, 0.4);
        let by_hand = raw::insert_singly(&theirs.url(), 32_000, 16, &payload).await?;
        let took = ledger::insert_singly(&opened, 32_000, 16).await?;
        table.rate("enqueue singly, 16 tasks (raw: 16 connections)", 32_000, took, by_hand, 1.5);
    }
    for (what, lanes, least) in [("drain", 0, 0.75), ("drain, 1000 lanes", 1_000, 0.4)] {
        if !is_wanted(what) {
            continue;
        }
        let theirs = Database::new(&base, None);
        let mut best = None;
        for connections in [1, 2, 4] {
            raw::make(&theirs.url()).await?;
            raw::insert(&theirs.url(), JOBS, 1_000, &payload).await?;
            let took = raw::drain(&theirs.url(), connections, 100).await?;
            best = Some(best.map_or(took, |best| took.min(best)));
        }
        for (workers, concurrency) in [(1, 100), (1, 1_000), (2, 1_000), (4, 500)] {
            let ours = Database::new(&base, None);
            let opened = Ledger::open(&ours.url()).await?;
            ledger::insert(&opened, JOBS, 1_000, lanes).await?;
            let took = ledger::drain(&ours.url(), JOBS, workers, concurrency).await?;
            let words = format!("{what}, {workers} workers of {concurrency}");
            table.rate(&words, JOBS, took, best.unwrap_or(took), least);
        }
    }
    if is_wanted("latency") {
        let ours = Database::new(&base, None);
        let latencies = ledger::latencies(&ours.url(), 200).await?;
        println!("idle enqueue to handler start: p50 {:?}, p99 {:?}", latencies[100], latencies[198]);
    }
    Ok(table.failures())
}
