//! `cargo bench -p benches --bench outbox`: from a shop's database into a ledger, beside the same by hand, in one run.
//!
//! Words after `--` choose what is measured: `delivery`, `crowd`, `idle`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acta::outbox::Relay;
use acta::{Context, JobError, Ledger, Worker};
use acta_store::sqlite::Synchronous;
use acta_testkit::postgres::{Database, Server};
use anyhow::Result;
use benches::outbox::{self, Shop};
use benches::table::Table;
use benches::work::Nothing;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{mpsc, oneshot};

const ROWS: usize = 50_000;
/// How many rows stay while others are carried.
const CROWD: usize = 1_000_000;
const ROUNDS: usize = 3;

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let failures = runtime.block_on(run(&wanted))?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(wanted: &[String]) -> Result<usize> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()));
    println!("raw:\n{}\n", outbox::RAW.join(";\n"));
    let server = Server::start(&["shared_buffers=1GB", "max_wal_size=8GB"]);
    let base = server.url("postgres");
    let mut table = Table::begin();
    if is_wanted("delivery") {
        delivery(&base, &mut table).await?;
    }
    if is_wanted("crowd") {
        crowd(&base, &mut table).await?;
    }
    if is_wanted("idle") {
        idle(&base, &mut table).await?;
    }
    Ok(table.failures())
}

fn filling() -> String {
    "x".repeat(185)
}

/// A shop and a ledger, both in PostgreSQL or both in SQLite.
struct Pair {
    shop: Shop,
    ledger: Ledger,
    _kept: Box<dyn std::any::Any + Send>,
}

impl Pair {
    async fn of(kind: Kind, base: &str) -> Result<Self> {
        match kind {
            Kind::Postgres => {
                let database = Database::new(base, None);
                let ledger = Ledger::open(&database.url()).await?;
                Ok(Self { shop: Shop::Postgres(Database::new(base, None)), ledger, _kept: Box::new(database) })
            }
            Kind::Sqlite(synchronous) => {
                let folder = tempfile::tempdir()?;
                let ledger = benches::ledger::Ledger::open(&folder.path().join("acta.db"), synchronous)?.library();
                Ok(Self { shop: Shop::Sqlite(tempfile::tempdir()?), ledger, _kept: Box::new(folder) })
            }
        }
    }
}

/// Where shop and ledger are.
#[derive(Clone, Copy)]
enum Kind {
    Postgres,
    /// And when a commit of the ledger is on disk.
    Sqlite(Synchronous),
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite(_) => "SQLite",
        }
    }
}

/// As they are used unless somebody says otherwise.
const KINDS: [Kind; 2] = [Kind::Postgres, Kind::Sqlite(Synchronous::Full)];

async fn delivery(base: &str, table: &mut Table) -> Result<()> {
    let kinds = [
        (Kind::Postgres, "PostgreSQL to PostgreSQL"),
        (Kind::Sqlite(Synchronous::Normal), "SQLite to SQLite, NORMAL"),
        (Kind::Sqlite(Synchronous::Full), "SQLite to SQLite, FULL"),
    ];
    for (kind, word) in kinds {
        let (mut ours, mut by_hand) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            let raw = match kind {
                Kind::Sqlite(synchronous) => outbox::carry_by_hand_in_files(ROWS, &filling(), synchronous)?,
                Kind::Postgres => {
                    let (from, to) = (Database::new(base, None), Database::new(base, None));
                    outbox::carry_by_hand(&from, &to, ROWS, &filling()).await?
                }
            };
            by_hand = by_hand.min(raw);
            let pair = Pair::of(kind, base).await?;
            let source = pair.shop.make().await?;
            pair.shop.stage(ROWS, &filling()).await?;
            ours = ours.min(outbox::carry(&pair.ledger, source).await?);
        }
        table.rate(&format!("delivery in lanes, {word}"), ROWS, ours, by_hand, 0.4);
    }
    Ok(())
}

async fn crowd(base: &str, table: &mut Table) -> Result<()> {
    for kind in KINDS {
        let (alone, beside) = (Pair::of(kind, base).await?, Pair::of(kind, base).await?);
        let sources = [alone.shop.make().await?, beside.shop.make().await?];
        beside.shop.crowd(CROWD).await?;
        let mut times = [Duration::MAX; 2];
        // In turns, so that both ledgers grow alike.
        for _ in 0..ROUNDS {
            for (place, pair) in [&alone, &beside].into_iter().enumerate() {
                pair.shop.stage(ROWS, &filling()).await?;
                times[place] = times[place].min(outbox::carry(&pair.ledger, Arc::clone(&sources[place])).await?);
            }
        }
        let [alone, beside] = times;
        table.time(&format!("delivery beside 1 M rows that stay, {}", kind.word()), beside, alone, 1.2);
    }
    Ok(())
}

async fn idle(base: &str, table: &mut Table) -> Result<()> {
    const TIMES: usize = 100;
    for kind in KINDS {
        let pair = Pair::of(kind, base).await?;
        let source = pair.shop.make().await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let relay = tokio::spawn(Relay::new(&pair.ledger).source(source).run(async { drop(stopped.await) }));
        // Nothing else runs in this process.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (cpu, since) = (clock_gettime(ClockId::ProcessCPUTime), Instant::now());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let used = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime) - cpu)?;
        table.time(&format!("an idle relay's share of a core, {}", kind.word()), used, since.elapsed(), 0.02);

        let (sender, mut started) = mpsc::unbounded_channel();
        let handler = move |_: Nothing, _: Context| {
            let _ = sender.send(Instant::now());
            async { Ok::<_, JobError>(()) }
        };
        let (end, ended) = oneshot::channel::<()>();
        let ledger = pair.ledger.clone();
        let worker = tokio::spawn(async move {
            Worker::new(&ledger, "bench").handle(handler).run(async { drop(ended.await) }).await
        });
        let mut times = Vec::with_capacity(TIMES);
        for number in 0..TIMES as u64 {
            // At any moment between two looks of the relay.
            let pause = 60 + number * 37 % 50;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let begun = Instant::now();
            pair.shop.stage(1, &filling()).await?;
            if let Some(at) = started.recv().await {
                times.push(at - begun);
            }
        }
        times.sort_unstable();
        let what = format!("staged to handler start, idle, p50, {} (60 ms)", kind.word());
        table.time(&what, times[TIMES / 2], Duration::from_millis(60), 1.0);
        drop((stop, end));
        relay.await??;
        worker.await??;
    }
    Ok(())
}
