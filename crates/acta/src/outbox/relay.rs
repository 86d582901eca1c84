//! The relay: round after round.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use acta_core::relay::{HOLD, Pace, Source};
use acta_core::{Random, Result, Seeded, Span};
use acta_store::random::system_random;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::round::Round;
use crate::ledger::Ledger;

/// Carries rows from outboxes into a ledger.
///
/// Relays are peers: any number of them may work on one outbox. One that dies holds what it has taken for thirty seconds; then
/// another one takes it over, and what had arrived is not delivered again.
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

    /// For how long rows are held, instead of 30 s: so long they wait where a relay has died. It delivers within half of it.
    pub fn hold(mut self, hold: Span) -> Self {
        self.hold = hold;
        self
    }

    /// Ends when a look finds nothing that may be delivered now.
    pub fn until_idle(mut self, until_idle: bool) -> Self {
        self.until_idle = until_idle;
        self
    }

    /// What wakes it, for a process that stages rows itself: to be notified behind the commit. Without it a relay looks every 50 ms.
    pub fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.woken)
    }

    /// Works until `shutdown` is ready, and then until what it has taken is delivered or given back.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let mut set = JoinSet::new();
        let ending = Arc::new(tokio::sync::watch::Sender::new(false));
        for source in &self.sources {
            let line = Line {
                source: Arc::clone(source),
                ledger: self.ledger.clone(),
                hold: self.hold,
                until_idle: self.until_idle,
                random: system_random()?,
                pace: Pace::default(),
                id: None,
            };
            set.spawn(line.run(Arc::clone(&self.woken), ending.subscribe()));
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

/// What carries from one source.
struct Line {
    source: Arc<dyn Source>,
    ledger: Ledger,
    hold: Span,
    until_idle: bool,
    random: Seeded,
    pace: Pace,
    id: Option<String>,
}

impl Line {
    async fn run(mut self, woken: Arc<Notify>, mut ending: tokio::sync::watch::Receiver<bool>) {
        while !*ending.borrow_and_update() {
            let pause_ms = match self.round().await {
                Ok(has_found) => {
                    if self.pace.is_failing() {
                        tracing::info!("the outbox is worked on again");
                    }
                    if self.until_idle && !has_found {
                        return;
                    }
                    self.pace.went_well(has_found)
                }
                Err(fault) => {
                    let pause_ms = self.pace.failed();
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
    }

    /// One look; whether there was anything.
    async fn round(&mut self) -> Result<bool> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.source.id().await?,
        };
        self.id = Some(id.clone());
        let round = Round {
            source: &*self.source,
            ledger: &**self.ledger.store(),
            id: &id,
            token: format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64()),
            until: Instant::now() + self.hold.to_std() / 2,
            random: &mut self.random,
            arrived: 0,
        };
        round.run(self.hold).await
    }
}
