//! The relay: look after look.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use acta_core::relay::{Found, HOLD, Pace, Source};
use acta_core::{Result, Span};
use acta_store::random::system_random;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::line::Line;
use crate::ledger::Ledger;

/// Carries rows from outboxes into a ledger.
///
/// Relays are peers: any number of them may work on one outbox. One has it to itself while it finds rows, the others stand by. Where it
/// dies, another one takes over in ten seconds, and what had arrived is not delivered again.
#[derive(Debug)]
pub struct Relay {
    ledger: Ledger,
    sources: Vec<Arc<dyn Source>>,
    hold: Span,
    until_idle: bool,
    woken: Arc<Notify>,
}

impl Relay {
    /// A relay into this ledger, which has no source yet.
    pub fn new(ledger: &Ledger) -> Self {
        Self { ledger: ledger.clone(), sources: Vec::new(), hold: HOLD, until_idle: false, woken: Arc::default() }
    }

    /// One source more.
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(source);
        self
    }

    /// For how long a relay has an outbox to itself, instead of 10 s: so long its rows wait where it has died.
    pub fn hold(mut self, hold: Span) -> Self {
        self.hold = hold;
        self
    }

    /// Ends when a look finds nothing that may be delivered now. Another relay's time is waited for.
    pub fn until_idle(mut self, until_idle: bool) -> Self {
        self.until_idle = until_idle;
        self
    }

    /// What wakes it, for a process that stages rows itself: to be notified behind the commit. Without it a relay looks every 50 ms.
    pub fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.woken)
    }

    /// Works until `shutdown` is ready, and then until what it has in hand is delivered.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let mut set = JoinSet::new();
        let ending = Arc::new(watch::Sender::new(false));
        for source in &self.sources {
            let line = Line::new(Arc::clone(source), &self.ledger, self.hold, system_random()?);
            set.spawn(carry(line, self.until_idle, Arc::clone(&self.woken), ending.subscribe()));
        }
        let mut shutdown = std::pin::pin!(shutdown);
        let mut is_told = false;
        loop {
            tokio::select! {
                ended = set.join_next() => if ended.is_none() { break },
                () = &mut shutdown, if !is_told => {
                    is_told = true;
                    ending.send_replace(true);
                }
            }
        }
        Ok(())
    }
}

/// Works on one source until it is told to end.
async fn carry(mut line: Line, until_idle: bool, woken: Arc<Notify>, mut ending: watch::Receiver<bool>) {
    let mut pace = Pace::default();
    while !*ending.borrow_and_update() {
        let pause_ms = match line.round(&ending).await {
            Ok(found) => {
                if pace.is_failing() {
                    tracing::info!("the outbox is worked on again");
                }
                if until_idle && found == Found::Nothing {
                    break;
                }
                pace.went_well(found)
            }
            Err(fault) => {
                let pause_ms = pace.failed();
                tracing::warn!(%fault, pause_ms, "the outbox waits");
                pause_ms
            }
        };
        if pause_ms == 0 {
            continue;
        }
        tokio::select! {
            () = sleep(Duration::from_millis(pause_ms)) => {}
            () = woken.notified() => {}
            _ = ending.changed() => {}
        }
    }
    line.end().await;
}
