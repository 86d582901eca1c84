//! The relay: take, deliver, remove.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use acta_core::relay::{
    Arrival, Batch, HOLD, MOST_TAKEN, Next, Pace, Reason, Row, Source, Taken, after_refusal, delivery_key,
};
use acta_core::store::{Deliver, Delivered, Deliveries};
use acta_core::{Error, Label, Namespace, Random, Result, Seeded, Span};
use acta_store::failpoint::failpoint;
use acta_store::random::system_random;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

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
        let token = format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64());
        let begun = Instant::now();
        let Taken { rows, now, has_found } = self.source.take(&token, MOST_TAKEN, self.hold).await?;
        let (mut good, mut fault) = (Vec::with_capacity(rows.len()), None);
        for row in rows {
            match row.judge(&id, now) {
                Ok(arrival) => good.push((row, arrival)),
                Err(_) if fault.is_some() => self.source.give_back(&token, &[row.id]).await?,
                Err(reason) => {
                    if let Err(refusal) = self.put_aside(&token, &id, &row, reason).await {
                        self.source.give_back(&token, &[row.id]).await?;
                        fault = Some(refusal);
                    }
                }
            }
        }
        // In half the time in which nobody else may have them.
        let until = begun + self.hold.to_std() / 2;
        for batch in Batch::of(good) {
            let namespace = batch.rows.first().map(|(_, arrival)| arrival.namespace.clone());
            let Some(namespace) = namespace else { continue };
            if fault.is_none() {
                fault = self.deliver(&token, &id, (namespace, batch), until).await.err();
            } else {
                self.give_back(&token, &batch.rows).await?;
            }
        }
        fault.map_or(Ok(has_found), Err)
    }

    /// Delivers the rows of one namespace. What can't be delivered now is given back.
    async fn deliver(
        &mut self,
        token: &str,
        id: &str,
        (namespace, mut batch): (Namespace, Batch),
        until: Instant,
    ) -> Result<()> {
        while !batch.rows.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let arrivals = batch.rows.iter().map(|(_, arrival)| (arrival.key.clone(), arrival.job.clone())).collect();
            let deliver = Deliver { namespace: namespace.clone(), deliveries: Deliveries::Arrive(arrivals) };
            let answer = if left.is_zero() {
                Err(late(&namespace))
            } else {
                timeout(left, self.ledger.store().deliver(deliver)).await.unwrap_or_else(|_| Err(late(&namespace)))
            };
            let refused_at = match &answer {
                Err(Error::At { index, source }) if source.is_of_one_job() => Some(*index),
                // It concerns the queue, and so each of them: one after another hears of it.
                Err(fault) if fault.is_of_one_job() => Some(0),
                _ => None,
            };
            match (answer, refused_at) {
                (Ok(answers), _) => return self.settle(token, id, batch, answers).await,
                (Err(fault), Some(index)) => {
                    let Some(cut) = batch.cut(index) else { return Err(fault) };
                    match after_refusal(cut.refused.refusals, &mut self.random) {
                        Next::Later(delay_ms) => {
                            let delay = Span::from_millis(delay_ms);
                            let said = fault.alone().to_string();
                            self.source.defer(token, &cut.refused, &cut.behind, delay, &said).await?;
                        }
                        Next::Quarantine => {
                            self.source.give_back(token, &cut.behind).await?;
                            let reason = Reason::Refused(fault.alone().to_string());
                            self.put_aside(token, id, &cut.refused, reason).await?;
                        }
                    }
                }
                (Err(fault), None) => {
                    self.give_back(token, &batch.rows).await?;
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    async fn settle(&self, token: &str, id: &str, batch: Batch, answers: Vec<Delivered>) -> Result<()> {
        let mut gone = Vec::with_capacity(batch.rows.len());
        for ((row, _), answer) in batch.rows.iter().zip(answers) {
            match answer {
                Delivered::Now { .. } | Delivered::Before(_) => gone.push(row),
                // Somebody has closed it and did not come to say so in the outbox.
                Delivered::Closed | Delivered::Open => {
                    self.put_aside(token, id, row, Reason::Refused("its delivery is closed".into())).await?;
                }
            }
        }
        failpoint("outbox-delivered");
        metrics::counter!("acta_outbox_delivered_total").increment(gone.len() as u64);
        self.source.remove(token, &gone).await
    }

    /// Puts a row into quarantine. Its delivery is closed first, so that a relay that still has it in hand delivers nothing either.
    async fn put_aside(&self, token: &str, id: &str, row: &Row, reason: Reason) -> Result<()> {
        let place: Option<(Namespace, Label)> = row.namespace.parse().ok().zip(delivery_key(id, &row.message).ok());
        if let Some((namespace, key)) = place {
            let closed =
                self.ledger.store().deliver(Deliver { namespace, deliveries: Deliveries::Close(vec![key]) }).await?;
            if let Some(Delivered::Before(_)) = closed.first() {
                return self.source.remove(token, &[row]).await;
            }
        }
        tracing::warn!(row = row.id, %reason, "a row of the outbox is put into quarantine");
        metrics::counter!("acta_outbox_quarantined_total").increment(1);
        self.source.quarantine(token, row, &reason).await
    }

    async fn give_back(&self, token: &str, rows: &[(Row, Arrival)]) -> Result<()> {
        let ids: Vec<i64> = rows.iter().map(|(row, _)| row.id).collect();
        self.source.give_back(token, &ids).await
    }
}

fn late(namespace: &Namespace) -> Error {
    let why = "did not answer in the time in which the rows are certainly ours".into();
    Error::Unavailable { place: format!("the ledger, for {namespace}"), why }
}
