//! One outbox, as a relay works on it.
//!
//! While one batch is on its way into the ledger, what has arrived before is removed and the next one is looked for. Nothing is written
//! in the outbox before it has arrived: a relay that dies leaves its rows as they were, and whoever takes over finds them in the same
//! order. So it is the ledger alone, by the keys of deliveries, that sees to it that none arrives twice.

use std::sync::Arc;

use acta_core::relay::{Found, Held, MOST_TAKEN, PATIENCE, Row, Source};
use acta_core::{Error, Random, Result, Seeded, Span};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::round::{Carried, Judged, Round};
use crate::ledger::Ledger;
use crate::presence::host;

/// An outbox, its way into the ledger, and what is known of it.
pub(super) struct Line {
    source: Arc<dyn Source>,
    ledger: Ledger,
    hold: Span,
    random: Seeded,
    /// This relay, as others see it.
    relay: String,
    /// Which outbox it is.
    id: Option<String>,
    /// What the source said when it was last held, when that was asked, and since when it is held without a gap.
    held: Option<(Held, Instant, Instant)>,
    /// No row was there since the outbox was last held.
    is_clear: bool,
    stands_by: bool,
}

impl Line {
    pub(super) fn new(source: Arc<dyn Source>, ledger: &Ledger, hold: Span, mut random: Seeded) -> Self {
        let host: String = host().chars().filter(char::is_ascii).take(30).collect();
        let relay = format!("{host}:{}:{:016x}", std::process::id(), random.next_u64());
        let ledger = ledger.clone();
        Self { source, ledger, hold, random, relay, id: None, held: None, is_clear: false, stands_by: false }
    }

    /// Delivers what is there, until there is nothing more or something is in the way.
    pub(super) async fn round(&mut self, ending: &watch::Receiver<bool>) -> Result<Found> {
        if self.stands_by && self.hold().await?.is_none() {
            return Ok(Found::Another);
        }
        let mut looked_at = Instant::now();
        let look = self.source.look(MOST_TAKEN, &[]).await?;
        self.is_clear |= !look.has_found;
        let mut found = match (look.has_found, look.rows.is_empty()) {
            (false, _) => Found::Nothing,
            (true, true) => Found::Something,
            (true, false) => Found::Unmoved,
        };
        let is_parallel = self.ledger.store().is_parallel();
        let mut rows = Judged::default();
        if !look.rows.is_empty() {
            let id = self.id().await?;
            match self.hold().await? {
                Some((held, ..)) => rows = Judged::of(look.rows, &id, held, is_parallel),
                None => found = Found::Another,
            }
        }
        let (mut gone, mut removed) = (Vec::new(), 0);
        let mut fault = None;
        while !rows.ids.is_empty() && !*ending.borrow() {
            let Some((held, at, begun)) = self.hold().await? else {
                found = Found::Another;
                break;
            };
            // While nobody held it, others may have decided about what was looked at.
            if looked_at < begun && looked_at.elapsed() > self.hold.to_std() / 3 {
                found = Found::Something;
                break;
            }
            let (source, id, in_hand) = (Arc::clone(&self.source), self.id().await?, rows.ids.clone());
            let arrived = std::mem::take(&mut gone);
            let ahead = async {
                let removed = remove(&*source, &arrived).await?;
                let at = Instant::now();
                let look = source.look(MOST_TAKEN, &in_hand).await?;
                Ok::<_, Error>((removed, at, Judged::of(look.rows, &id, held, is_parallel)))
            };
            let (carried, next) = tokio::join!(self.carry(rows, &id, at), ahead);
            gone = carried.gone;
            if let (Some(fault), Err(_)) = (&carried.fault, &next) {
                tracing::warn!(fault = %fault.what, "some rows of the outbox wait");
            }
            let (before, at, next) = next?;
            removed += before;
            fault = carried.fault;
            // What was looked at meanwhile may stand behind what was held up. Where nothing could be removed, somebody has it locked.
            let is_stuck = before == 0 && !arrived.is_empty();
            rows = if carried.is_smooth && !is_stuck { next } else { Judged::default() };
            looked_at = at;
        }
        removed += remove(&*self.source, &gone).await?;
        match fault {
            Some(fault) if removed == 0 || fault.is_everywhere => Err(fault.what),
            Some(fault) => {
                tracing::warn!(fault = %fault.what, "some rows of the outbox wait");
                Ok(Found::Something)
            }
            None if found == Found::Unmoved && removed > 0 => Ok(Found::Something),
            None => Ok(found),
        }
    }

    /// Which outbox it is.
    async fn id(&mut self) -> Result<String> {
        if self.id.is_none() {
            self.id = Some(self.source.id().await?);
        }
        Ok(self.id.clone().unwrap_or_default())
    }

    async fn carry(&mut self, rows: Judged, id: &str, at: Instant) -> Carried {
        let round = Round {
            source: &*self.source,
            ledger: &**self.ledger.store(),
            id,
            until: Instant::now() + PATIENCE,
            closes_until: at + self.hold.to_std() / 2,
        };
        round.run(rows, &mut self.random).await
    }

    /// Has the outbox, for two thirds of its time at least, and since when; none where another relay has it.
    async fn hold(&mut self) -> Result<Option<(Held, Instant, Instant)>> {
        if let Some(held) = self.held.filter(|(_, at, _)| at.elapsed() < self.hold.to_std() / 3) {
            return Ok(Some(held));
        }
        let at = Instant::now();
        let unbroken = self.held.filter(|(_, before, _)| at.duration_since(*before) < self.hold.to_std());
        let begun = unbroken.map_or(at, |(.., begun)| begun);
        let held = self.source.hold(&self.relay, self.hold, self.is_clear).await?;
        self.is_clear &= held.is_none();
        self.stands_by = held.is_none();
        self.held = held.map(|held| (held, at, begun));
        Ok(self.held)
    }

    /// Lets go of the outbox, if that can be said.
    pub(super) async fn end(self) {
        if self.held.is_some() {
            let said = timeout(PATIENCE, self.source.let_go(&self.relay)).await;
            if let Err(fault) = said.unwrap_or_else(|_| Err(silent())) {
                tracing::warn!(%fault, "the outbox waits until this relay's time is over");
            }
        }
    }
}

fn silent() -> Error {
    Error::Unavailable { place: "the outbox".into(), why: "did not answer".into() }
}

async fn remove(source: &dyn Source, gone: &[Row]) -> Result<u64> {
    if gone.is_empty() { Ok(0) } else { source.remove(gone).await }
}
