//! How long it takes from an enqueue into an idle queue to the start of its handler.
//!
//! The handlers run in a process of their own, which writes the instant at which each one starts. All processes of a
//! machine read the same monotonic clock, so that those instants can be compared with the enqueuer's.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use acta::{Context, JobError, Ledger, Worker};
use acta_testkit::postgres::Database;
use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{mpsc, oneshot};

use super::graphile::{Graphile, How};
use super::raw::connect;
use crate::work::Nothing;

/// The first word of the command line of a process of ours that runs handlers.
pub const HANDLERS: &str = "starts";
/// How long nothing is done between two jobs: the first one is settled by then.
const PAUSE: Duration = Duration::from_millis(20);
/// Jobs before the ones that count: connections are opened, statements are prepared.
const WARM_UP: usize = 20;

/// Now, in nanoseconds of the clock that all processes share.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// What such a process of ours does: it says when each handler starts, until its input ends.
pub async fn run_handlers(url: &str) -> Result<()> {
    let ledger = Ledger::open(url).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(stop);
    });
    let handler = |_: Nothing, _: Context| {
        let now = now_ns();
        let _ = writeln!(std::io::stdout(), "{now}");
        async { Ok::<_, JobError>(()) }
    };
    Worker::new(&ledger, "bench").handle(handler).run(async { drop(stopped.await) }).await?;
    Ok(())
}

/// A process that says when handlers start.
struct Handlers {
    process: Child,
    started: mpsc::UnboundedReceiver<i64>,
}

impl Handlers {
    fn spawn(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().context("its output")?;
        let (sender, started) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            // Anything else that it says is for people.
            for at in BufReader::new(output).lines().map_while(Result::ok).filter_map(|line| line.parse().ok()) {
                let _ = sender.send(at);
            }
        });
        Ok(Self { process, started })
    }

    async fn next(&mut self) -> Result<i64> {
        self.started.recv().await.context("the process with the handlers has ended")
    }

    fn end(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        self.process.wait()?;
        Ok(())
    }
}

/// The times, sorted, each from before the call `enqueue` to the start of the handler.
async fn times(mut handlers: Handlers, count: usize, enqueue: impl AsyncFn() -> Result<()>) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for number in 0..WARM_UP + count {
        tokio::time::sleep(PAUSE).await;
        let begun = now_ns();
        enqueue().await?;
        let took = handlers.next().await? - begun;
        if number >= WARM_UP {
            times.push(Duration::from_nanos(u64::try_from(took)?));
        }
    }
    handlers.end()?;
    times.sort_unstable();
    Ok(times)
}

/// Ours: by the library on both sides.
pub async fn ours(database: &Database, count: usize) -> Result<Vec<Duration>> {
    let url = database.url();
    let ledger = Ledger::open(&url).await?;
    ledger.define::<Nothing>().await?;
    let handlers = Handlers::spawn(Command::new(std::env::current_exe()?).args([HANDLERS, &url]))?;
    let enqueue = async || {
        ledger.enqueue(&Nothing::new(0, 0)).await?;
        Ok(())
    };
    times(handlers, count, enqueue).await
}

/// Theirs: enqueued by the function that is theirs for this, as a prepared statement.
pub async fn theirs(graphile: &Graphile, database: &Database, how: How, count: usize) -> Result<Vec<Duration>> {
    let url = database.url();
    graphile.migrate(&url)?;
    let client = connect(&url).await?;
    let add = client.prepare("SELECT 1 FROM graphile_worker.add_job('nothing', $1::text::json)").await?;
    let payload = serde_json::to_string(&Nothing::new(0, 0))?;
    let handlers = Handlers::spawn(&mut graphile.starts(&url, how))?;
    let enqueue = async || {
        client.execute(&add, &[&payload]).await?;
        Ok(())
    };
    times(handlers, count, enqueue).await
}
