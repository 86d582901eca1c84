//! Whether a claim's cost depends on what it does not look at.

use std::path::Path;
use std::time::{Duration, Instant};

use acta_core::store::NewJob;
use acta_core::{Json, Label};
use acta_store::sqlite::Synchronous;
use anyhow::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::ledger::Ledger;

/// How many ready jobs are claimed one by one.
const READY: usize = 200;

/// How long nothing is done before each claim.
const REST: Duration = Duration::from_micros(500);

/// What lies beside the ready jobs.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Blocked members of so many lanes.
    Blocked {
        /// How many lanes.
        lanes: usize,
    },
    /// Finished jobs.
    Finished,
}

/// A ledger with `beside` many jobs beside the ready ones.
pub async fn prepare(path: &Path, beside: Beside, many: usize, payload: &Json) -> Result<Ledger> {
    let ledger = Ledger::open(path, Synchronous::Normal)?;
    match beside {
        Beside::Nothing => {}
        Beside::Blocked { lanes } => {
            // The heads are held, so that all others of their lanes stay blocked.
            for first in (0..lanes).step_by(1_000) {
                let heads = (first..lanes.min(first + 1_000)).map(|lane| in_lane(lane, payload));
                ledger.add(heads.collect::<Result<_>>()?).await?;
            }
            while !ledger.claim(1_000).await?.is_empty() {}
            for first in (0..many).step_by(1_000) {
                let blocked = (first..first + 1_000).map(|index| in_lane(index % lanes, payload));
                ledger.add(blocked.collect::<Result<_>>()?).await?;
            }
        }
        Beside::Finished => {
            ledger.insert(many, 1_000, payload).await?;
            ledger.drain(1_000).await?;
        }
    }
    ledger.insert(READY, READY, payload).await?;
    Ok(ledger)
}

/// The median time of a claim of one from each of the ledgers. They take turns, so that all are measured in the same
/// moments of the machine.
pub async fn median_claims(ledgers: &[Ledger]) -> Result<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(READY); ledgers.len()];
    for _ in 0..READY {
        for (ledger, times) in ledgers.iter().zip(&mut times) {
            // Until no other ledger's thread looks for work any more: on one core they would take turns with this one.
            std::thread::park_timeout(REST);
            let start = Instant::now();
            let claimed = ledger.claim(1).await?;
            times.push(start.elapsed());
            anyhow::ensure!(claimed.len() == 1, "a ready job");
        }
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[READY / 2]
    };
    Ok(times.into_iter().map(median).collect())
}

/// Keeps this thread, and those that it starts from now on, on one core: to wake another core costs more than a claim,
/// now and then twice as much, and is the machine's price, not the ledger's.
pub fn stay_on_one_core() -> Result<()> {
    let mut first = CpuSet::new();
    let allowed = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).find(|&core| allowed.is_set(core)).unwrap_or(0);
    first.set(core);
    sched_setaffinity(None, &first)?;
    Ok(())
}

fn in_lane(lane: usize, payload: &Json) -> Result<NewJob> {
    let lane = Some(Label::new("lane", &format!("lane-{lane}"))?);
    Ok(NewJob { lane, ..NewJob::new(payload.clone()) })
}
