//! `cargo bench -p benches`: the ledger beside the same transitions by hand, in one run, as ratios.

use std::process::ExitCode;
use std::time::Duration;

use acta_core::Json;
use acta_store::sqlite::Synchronous;
use anyhow::Result;
use benches::flat::{Beside, median_claims, prepare, stay_on_one_core};
use benches::ledger::Ledger;
use benches::raw::{self, Raw, Writes};
use benches::table::Table;
use benches::work;

/// How often each figure is taken; the median counts.
const ROUNDS: usize = 5;

/// What the raw side must reach, in jobs/s: half of what two such cores are known to do.
mod floor {
    pub(super) const INSERT: f64 = 300_000.0;
    pub(super) const DRAIN_NORMAL: f64 = 147_000.0;
    pub(super) const DRAIN_FULL: f64 = 60_000.0;
}

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let failures = runtime.block_on(run())?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn median(mut times: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    // By the ratio, so that both sides are of the same moment of a noisy machine.
    times.sort_by(|one, other| {
        let ratio = |pair: &(Duration, Duration)| pair.0.as_secs_f64() / pair.1.as_secs_f64();
        ratio(one).total_cmp(&ratio(other))
    });
    times[times.len() / 2]
}

async fn run() -> Result<usize> {
    println!("raw:\n{};\n{};\n{};\n{};\n", raw::TABLE, raw::INSERT, raw::CLAIM, raw::SETTLE);
    println!("the state alone:\n{};\n{};\n", raw::CLAIM_STATE, raw::SETTLE_STATE);
    let text = format!("\"{}\"", "x".repeat(198));
    let payload = Json::new(&text)?;
    let mut table = Table::begin();
    for (word, synchronous) in [("NORMAL", Synchronous::Normal), ("FULL", Synchronous::Full)] {
        batches(&mut table, word, synchronous, &payload).await?;
        drain(&mut table, word, synchronous, &payload).await?;
    }
    singles(&mut table, &payload).await?;
    if std::env::args().all(|argument| argument != "--quick") {
        flat(&mut table, &payload).await?;
    }
    Ok(table.failures())
}

async fn batches(table: &mut Table, word: &str, synchronous: Synchronous, payload: &Json) -> Result<()> {
    const JOBS: usize = 50_000;
    let (mut inserts, mut drains, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir_in(".")?;
        let ledger = Ledger::open(&folder.path().join("acta.db"), synchronous)?;
        let by_hand = Raw::open(&folder.path().join("raw.db"), synchronous)?;
        let raw_insert = by_hand.insert(JOBS, 1_000, payload.as_str())?;
        inserts.push((ledger.insert(JOBS, 1_000, payload).await?, raw_insert));
        let raw_drain = by_hand.drain(100, Writes::Whole)?;
        let ours = ledger.drain(100).await?;
        drains.push((ours, raw_drain));
        by_hand.insert(JOBS, 1_000, payload.as_str())?;
        bare.push((ours, by_hand.drain(100, Writes::StateAlone)?));
    }
    let (ours, raw) = median(inserts);
    table.floor("insert", JOBS, raw, floor::INSERT);
    table.rate(&format!("enqueue, 1000 a call, {word}"), JOBS, ours, raw, 0.4);
    let (ours, raw) = median(drains);
    let least = if synchronous == Synchronous::Full { floor::DRAIN_FULL } else { floor::DRAIN_NORMAL };
    table.floor("claim and settle", JOBS, raw, least);
    table.rate(&format!("claim and settle, 100 a call, {word}"), JOBS, ours, raw, 0.4);
    let (ours, raw) = median(bare);
    table.rate(&format!("  beside the state alone, {word}"), JOBS, ours, raw, 0.4);
    Ok(())
}

/// All that a worker of the library does for its jobs, beside claims and settles by hand.
async fn drain(table: &mut Table, word: &str, synchronous: Synchronous, payload: &Json) -> Result<()> {
    const JOBS: usize = 50_000;
    let mut drains = Vec::new();
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir_in(".")?;
        let by_hand = Raw::open(&folder.path().join("raw.db"), synchronous)?;
        by_hand.insert(JOBS, 1_000, payload.as_str())?;
        let raw = by_hand.drain(100, Writes::Whole)?;
        let mut best = Duration::MAX;
        for concurrency in [100, 1_000] {
            let path = folder.path().join(format!("{concurrency}.db"));
            let ledger = Ledger::open(&path, synchronous)?.library();
            work::insert(&ledger, JOBS, 1_000, 0).await?;
            best = best.min(work::drain(JOBS, 1, concurrency, async || Ok(ledger.clone())).await?);
        }
        drains.push((best, raw));
    }
    let (ours, raw) = median(drains);
    table.rate(&format!("drain by a worker (raw: 100 a call), {word}"), JOBS, ours, raw, 0.5);
    Ok(())
}

async fn singles(table: &mut Table, payload: &Json) -> Result<()> {
    const ONE: usize = 4_000;
    const SIXTEEN: usize = 16_000;
    let (mut one, mut sixteen) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir_in(".")?;
        let ledger = Ledger::open(&folder.path().join("acta.db"), Synchronous::Full)?;
        let by_hand = Raw::open(&folder.path().join("raw.db"), Synchronous::Full)?;
        let raw = by_hand.insert(ONE, 1, payload.as_str())?;
        one.push((ledger.insert(ONE, 1, payload).await?, raw));
        let raw = by_hand.insert(SIXTEEN, 16, payload.as_str())?;
        sixteen.push((ledger.insert_from(16, SIXTEEN, payload).await?, raw));
    }
    let (ours, raw) = median(one);
    table.rate("enqueue singly, 1 task, FULL", ONE, ours, raw, 0.8);
    let (ours, raw) = median(sixteen);
    table.rate("enqueue singly, 16 tasks, FULL (raw: 16 rows)", SIXTEEN, ours, raw, 0.5);
    Ok(())
}

async fn flat(table: &mut Table, payload: &Json) -> Result<()> {
    const MANY: usize = 1_000_000;
    let cases = [
        ("claim, nothing beside", Beside::Nothing),
        ("claim beside 1 M blocked in one lane", Beside::Blocked { lanes: 1 }),
        ("claim beside 1 M blocked in 100 k lanes", Beside::Blocked { lanes: 100_000 }),
        ("claim beside 1 M finished", Beside::Finished),
    ];
    stay_on_one_core()?;
    let folder = tempfile::tempdir_in(".")?;
    let mut ledgers = Vec::new();
    for (index, (_, beside)) in cases.iter().enumerate() {
        ledgers.push(prepare(&folder.path().join(format!("{index}.db")), *beside, MANY, payload).await?);
    }
    let times = median_claims(&ledgers).await?;
    for ((what, _), took) in cases.iter().zip(&times).skip(1) {
        table.time(what, *took, times[0], 1.2);
    }
    Ok(())
}
