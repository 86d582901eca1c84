//! Whether claims stay fast while somebody holds an old snapshot, under which no dead index entry can be cleared away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acta::{Context, JobError, Ledger, Worker};
use acta_testkit::postgres::Database;
use anyhow::Result;
use tokio::sync::{Semaphore, oneshot};
use tokio_postgres::Client;

use super::by_hand::ByHand;
use super::raw::connect;
use crate::table::Table;
use crate::work::{Nothing, insert};

/// How many jobs wait at the most while jobs pass.
const WAITING: usize = 20_000;
/// How many are claimed at the end, to see how fast that is.
const AT_END: usize = 20_000;
const BATCH: usize = 1_000;

/// The rates after `jobs` have passed, with and without a snapshot that was taken before.
pub async fn measure(base: &str, table: &mut Table, jobs: usize) -> Result<()> {
    let free = after(base, jobs, false).await?;
    let held = after(base, jobs, true).await?;
    let thousands = jobs / 1_000;
    table.rate(
        &format!("last tenth of {thousands} k, snapshot held or not"),
        jobs / 10,
        held.passing,
        free.passing,
        0.6,
    );
    table.rate(&format!("claim after {thousands} k, snapshot held or not"), AT_END, held.claiming, free.claiming, 0.6);
    Ok(())
}

struct Took {
    /// To enqueue and work off the last tenth.
    passing: Duration,
    /// To claim, a hundred a call, once no worker works any more.
    claiming: Duration,
}

async fn after(base: &str, jobs: usize, is_held: bool) -> Result<Took> {
    let database = Database::new(base, None);
    let url = database.url();
    let ledger = Ledger::open(&url).await?;
    insert(&ledger, 1, 1, 0).await?;
    let _snapshot = if is_held { Some(hold(&url).await?) } else { None };
    let passing = pass(&ledger, jobs).await?;
    insert(&ledger, AT_END, BATCH, 0).await?;
    let by_hand = ByHand::new(&ledger)?;
    let begun = Instant::now();
    for _ in 0..AT_END / 100 {
        by_hand.claim(100).await?;
    }
    Ok(Took { passing, claiming: begun.elapsed() })
}

/// Somebody who reads, and takes their time. The snapshot lives as long as the connection.
async fn hold(url: &str) -> Result<Client> {
    let client = connect(url).await?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM acta.standing").await?;
    Ok(client)
}

/// Jobs are enqueued and worked off at the same time, by a worker of a hundred handlers, which does the maintenance, too; how
/// long the last tenth took.
async fn pass(ledger: &Ledger, jobs: usize) -> Result<Duration> {
    let room = Arc::new(Semaphore::new(WAITING));
    let (stop, stopped) = oneshot::channel::<()>();
    let (ended, worked) = (Arc::clone(&room), ledger.clone());
    let working = tokio::spawn(async move {
        let handler = move |_: Nothing, _: Context| {
            ended.add_permits(1);
            async { Ok::<_, JobError>(()) }
        };
        Worker::new(&worked, "bench").handle(handler).concurrency(100).run(async { drop(stopped.await) }).await
    });
    let mut last_tenth = Instant::now();
    for first in (0..jobs).step_by(BATCH) {
        room.acquire_many(u32::try_from(BATCH)?).await?.forget();
        if first == jobs / 10 * 9 {
            last_tenth = Instant::now();
        }
        insert(ledger, BATCH, BATCH, 0).await?;
    }
    room.acquire_many(u32::try_from(WAITING)?).await?.forget();
    let took = last_tenth.elapsed();
    drop(stop);
    working.await??;
    Ok(took)
}
