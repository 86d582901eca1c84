//! What workers do for the ledger beside their jobs. Each does it, nobody leads: whoever comes first leaves nothing to do
//! for the others, and that costs them one look.

use std::time::Duration;

use acta_core::{Definition, Random, Seeded};
use tokio::time::sleep;

use crate::context::Desk;
use crate::ledger::Ledger;

/// How many ended jobs one call removes at the most: little, so that nobody waits long for its turn.
const MOST_PRUNED: usize = 100;
/// How many such calls follow each other.
const MOST_CALLS: usize = 10;

/// About once a second, at instants of its own: peers do not come all at once.
pub(crate) struct Pace(Seeded);

impl Pace {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Seeded::new(seed))
    }

    fn next(&mut self) -> Duration {
        Duration::from_millis(500 + self.0.next_u64() % 1_001)
    }
}

/// Brings in what is due and removes what has been kept long enough, now and then, until it is aborted.
pub(crate) async fn maintain(desk: Desk, mut pace: Pace) {
    loop {
        sleep(pace.next()).await;
        // A queue that is not there yet, or a ledger out of reach: next time.
        if desk.store.recover(desk.namespace.clone()).await.is_err() {
            continue;
        }
        for _ in 0..MOST_CALLS {
            match desk.store.prune(desk.namespace.clone(), MOST_PRUNED).await {
                Ok((jobs, keys)) if jobs.max(keys) >= MOST_PRUNED => {}
                Ok(_) | Err(_) => break,
            }
        }
    }
}

/// Registers definitions, each as often as it takes.
pub(crate) async fn register(ledger: Ledger, definitions: Vec<Definition>) {
    const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_mins(1));
    for definition in definitions {
        let mut pause = PAUSES.0;
        while let Err(fault) = ledger.register(definition.clone()).await {
            tracing::warn!(name = %definition.name, %fault, "the definition could not be registered; trying again");
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}
