//! The ledger's side: through the library, as an application does it, on any substrate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use acta::{Context, Job, JobError, Ledger, Worker};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// A job that does nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nothing {
    filling: String,
    #[serde(skip)]
    lane: Option<String>,
}

impl Job for Nothing {
    const NAME: &'static str = "nothing";
    const QUEUE: &'static str = "bench";

    fn lane(&self) -> Option<String> {
        self.lane.clone()
    }
}

impl Nothing {
    /// A job of about 200 bytes, in one of so many lanes, if in any.
    pub fn new(number: usize, lanes: usize) -> Self {
        Self { filling: "x".repeat(185), lane: (lanes > 0).then(|| format!("lane {}", number % lanes)) }
    }
}

/// Enqueues `total` jobs in calls of `batch`; how long it took.
pub async fn insert(ledger: &Ledger, total: usize, batch: usize, lanes: usize) -> Result<Duration> {
    ledger.define::<Nothing>().await?;
    let start = Instant::now();
    for first in (0..total).step_by(batch) {
        let jobs: Vec<Nothing> = (first..first + batch).map(|number| Nothing::new(number, lanes)).collect();
        ledger.enqueue_many(&jobs).await?;
    }
    Ok(start.elapsed())
}

/// So many tasks enqueue one by one.
pub async fn insert_singly(ledger: &Ledger, total: usize, tasks: usize) -> Result<Duration> {
    ledger.define::<Nothing>().await?;
    let start = Instant::now();
    let mut set = JoinSet::new();
    for _ in 0..tasks {
        let ledger = ledger.clone();
        set.spawn(async move {
            for number in 0..total / tasks {
                ledger.enqueue(&Nothing::new(number, 0)).await?;
            }
            Ok::<_, acta::Error>(())
        });
    }
    while let Some(done) = set.join_next().await {
        done??;
    }
    Ok(start.elapsed())
}

/// So many workers, each with a ledger of its own that is opened for it, work off what is there; how long it took, from
/// the start of the first one until the last has stopped. Opening is left out, on every side.
pub async fn drain(
    total: usize,
    workers: usize,
    concurrency: usize,
    open: impl AsyncFn() -> Result<Ledger>,
) -> Result<Duration> {
    let (done, all_done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let mut set = JoinSet::new();
    let mut stops = Vec::new();
    let mut ledgers = Vec::with_capacity(workers);
    for _ in 0..workers {
        ledgers.push(open().await?);
    }
    let start = Instant::now();
    for ledger in ledgers {
        let (stop, stopped) = oneshot::channel::<()>();
        stops.push(stop);
        let (done, all_done) = (Arc::clone(&done), Arc::clone(&all_done));
        set.spawn(async move {
            let handler = move |_: Nothing, _: Context| {
                if done.fetch_add(1, Ordering::Relaxed) + 1 == total {
                    all_done.notify_one();
                }
                async { Ok::<_, JobError>(()) }
            };
            let worker = Worker::new(&ledger, Nothing::QUEUE).handle(handler).concurrency(concurrency);
            worker.run(async { drop(stopped.await) }).await
        });
    }
    all_done.notified().await;
    // The last ones are done when they are settled.
    drop(stops);
    while let Some(ended) = set.join_next().await {
        ended??;
    }
    Ok(start.elapsed())
}
