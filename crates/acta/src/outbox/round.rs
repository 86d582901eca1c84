//! One look at an outbox: take, deliver, remove.

use std::collections::BTreeMap;

use acta_core::relay::{
    Arrival, Batch, Cut, MOST_TAKEN, Next, Reason, Row, Source, Taken, after_refusal, delivery_key,
};
use acta_core::store::{Deliver, Delivered, Deliveries};
use acta_core::{Error, Label, Namespace, Result, Seeded, Span, Store};
use acta_store::failpoint::failpoint;
use tokio::time::{Instant, timeout_at};

/// What a round works with.
pub(super) struct Round<'l> {
    pub(super) source: &'l dyn Source,
    pub(super) ledger: &'l dyn Store,
    pub(super) random: &'l mut Seeded,
    /// Which outbox it is.
    pub(super) id: &'l str,
    /// Under which the rows are held.
    pub(super) token: String,
    /// Until when nothing else may be delivered under it: in half the time in which nobody else may have the rows.
    pub(super) until: Instant,
    /// How many rows have arrived.
    pub(super) arrived: usize,
}

impl Round<'_> {
    /// Takes rows for so long a time, and does with them what is to be done; whether there was anything.
    ///
    /// What can't be done now is given back. If nothing could be done, that is an error.
    pub(super) async fn run(mut self, hold: Span) -> Result<bool> {
        let Taken { rows, now, has_found } = self.source.take(&self.token, MOST_TAKEN, hold).await?;
        let (mut good, mut bad) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            match row.judge(self.id, now) {
                Ok(arrival) => good.push((row, arrival)),
                Err(reason) => bad.push((row, reason)),
            }
        }
        let mut failed = Failed::default();
        let mut batches = Batch::of(good).into_iter().peekable();
        while let Some(batch) = batches.next() {
            let ids = batch.ids();
            // A queue that does not answer leaves half of the time to the others.
            let left = self.until.saturating_duration_since(Instant::now());
            let until = if batches.peek().is_some() { self.until - left / 2 } else { self.until };
            if failed.is_everywhere {
                self.source.give_back(&self.token, &ids).await?;
            } else if let Err(fault) = self.deliver(batch, until).await {
                self.source.give_back(&self.token, &ids).await?;
                failed.with(fault, until);
            }
        }
        let ids: Vec<i64> = bad.iter().map(|(row, _)| row.id).collect();
        if failed.is_everywhere {
            self.source.give_back(&self.token, &ids).await?;
        } else if let Err(fault) = self.put_aside(bad).await {
            self.source.give_back(&self.token, &ids).await?;
            failed.with(fault, self.until);
        }
        match failed.fault {
            Some(fault) if self.arrived > 0 && !failed.is_everywhere => {
                tracing::warn!(%fault, "some rows of the outbox wait");
                Ok(true)
            }
            fault => fault.map_or(Ok(has_found), Err),
        }
    }

    /// Delivers the rows of one namespace.
    async fn deliver(&mut self, mut batch: Batch, until: Instant) -> Result<()> {
        while let Some((_, Arrival { namespace, .. })) = batch.rows.first() {
            let arrivals = batch.rows.iter().map(|(_, arrival)| (arrival.key.clone(), arrival.job.clone())).collect();
            match self.tell(namespace.clone(), Deliveries::Arrive(arrivals), until).await {
                Ok(answers) => return self.settle(batch, answers).await,
                Err(Error::At { index, source }) if source.is_of_one_job() => {
                    let Some(cut) = batch.cut(index) else { return Err(*source) };
                    self.refused(cut, &source).await?;
                }
                // It concerns the queue, and so each of them.
                Err(fault) if fault.is_of_one_job() => {
                    while let Some(cut) = batch.cut(0) {
                        self.refused(cut, &fault).await?;
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    async fn tell(&self, namespace: Namespace, deliveries: Deliveries, until: Instant) -> Result<Vec<Delivered>> {
        let late = || {
            let why = "did not answer in the time in which the rows are certainly ours".into();
            Error::Unavailable { place: "the ledger".into(), why }
        };
        if Instant::now() >= until {
            return Err(late());
        }
        let answers = self.ledger.deliver(Deliver { namespace, deliveries });
        timeout_at(until, answers).await.unwrap_or_else(|_| Err(late()))
    }

    async fn refused(&mut self, cut: Cut, fault: &Error) -> Result<()> {
        let Cut { refused, behind } = cut;
        match after_refusal(refused.refusals, self.random) {
            Next::Later(delay_ms) => {
                let delay = Span::from_millis(delay_ms);
                self.source.defer(&self.token, &refused, &behind, delay, &fault.to_string()).await
            }
            Next::Quarantine => {
                self.source.give_back(&self.token, &behind).await?;
                self.put_aside(vec![(refused, Reason::Refused(fault.to_string()))]).await
            }
        }
    }

    async fn settle(&mut self, batch: Batch, answers: Vec<Delivered>) -> Result<()> {
        let (mut gone, mut closed) = (Vec::with_capacity(batch.rows.len()), Vec::new());
        for ((row, _), answer) in batch.rows.iter().zip(answers) {
            match answer {
                Delivered::Now { .. } | Delivered::Before(_) => gone.push(row),
                Delivered::Closed | Delivered::Open => closed.push(row),
            }
        }
        self.arrived += gone.len();
        failpoint("outbox-delivered");
        metrics::counter!("acta_outbox_delivered_total").increment(gone.len() as u64);
        self.source.remove(&self.token, &gone).await?;
        for row in closed {
            self.quarantine(row, &Reason::Closed).await?;
        }
        Ok(())
    }

    /// Puts rows into quarantine. Their deliveries are closed first, so that a relay that still has one in hand delivers nothing either.
    async fn put_aside(&self, rows: Vec<(Row, Reason)>) -> Result<()> {
        let mut by_queue: BTreeMap<String, Closing> = BTreeMap::new();
        for (row, reason) in rows {
            match row.namespace.parse::<Namespace>().ok().zip(delivery_key(self.id, &row.message).ok()) {
                Some((namespace, key)) => {
                    let closing = by_queue.entry(row.namespace.clone());
                    let closing = closing.or_insert_with(|| Closing { namespace, keys: Vec::new(), rows: Vec::new() });
                    closing.keys.push(key);
                    closing.rows.push((row, reason));
                }
                // What names no queue can't have arrived in one.
                None => self.quarantine(&row, &reason).await?,
            }
        }
        for Closing { namespace, keys, rows } in by_queue.into_values() {
            let answers = match self.tell(namespace, Deliveries::Close(keys), self.until).await {
                // The ledger takes nothing for a queue of that name.
                Err(fault) if fault.is_of_one_job() => vec![Delivered::Closed; rows.len()],
                answers => answers?,
            };
            for ((row, reason), answer) in rows.iter().zip(answers) {
                match answer {
                    Delivered::Before(_) => self.source.remove(&self.token, &[row]).await?,
                    _ => self.quarantine(row, reason).await?,
                }
            }
        }
        Ok(())
    }

    async fn quarantine(&self, row: &Row, reason: &Reason) -> Result<()> {
        tracing::warn!(row = row.id, %reason, "a row of the outbox is put into quarantine");
        metrics::counter!("acta_outbox_quarantined_total").increment(1);
        self.source.quarantine(&self.token, row, reason).await
    }
}

/// Deliveries of one queue that are to be closed, and their rows.
struct Closing {
    namespace: Namespace,
    keys: Vec<Label>,
    rows: Vec<(Row, Reason)>,
}

/// What went wrong in a round.
#[derive(Default)]
struct Failed {
    /// At first.
    fault: Option<Error>,
    /// The ledger does not answer at all, so that no other queue need be tried.
    is_everywhere: bool,
}

impl Failed {
    /// Whatever was not answered by `until` may concern that one queue alone.
    fn with(&mut self, fault: Error, until: Instant) {
        self.is_everywhere |= (fault.is_unavailable() && Instant::now() < until) || fault.is_closed();
        self.fault.get_or_insert(fault);
    }
}
