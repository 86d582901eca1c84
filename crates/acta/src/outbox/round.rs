//! One batch of rows on its way into the ledger.

use std::collections::BTreeMap;

use acta_core::relay::{Arrival, Batch, Cut, Held, Next, Reason, Row, Source, after_refusal, delivery_key};
use acta_core::store::{Deliver, Delivered, Deliveries};
use acta_core::{Error, Label, Namespace, Random, Result, Seeded, Span, Store};
use acta_store::failpoint::failpoint;
use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

/// What a round works with.
#[derive(Clone, Copy)]
pub(super) struct Round<'l> {
    pub(super) source: &'l dyn Source,
    pub(super) ledger: &'l dyn Store,
    /// Which outbox it is.
    pub(super) id: &'l str,
    /// Until when the ledger is waited for.
    pub(super) until: Instant,
    /// Until when deliveries may be closed: no other relay, and so no operator behind it, can have decided about these rows yet.
    pub(super) closes_until: Instant,
}

/// Rows that were judged.
#[derive(Default)]
pub(super) struct Judged {
    /// What may be delivered.
    batches: Vec<Batch>,
    /// What never can.
    bad: Vec<(Row, Reason)>,
    /// The numbers of all.
    pub(super) ids: Vec<i64>,
}

impl Judged {
    /// Judges rows of the outbox with this id, for a ledger that is parallel or not.
    pub(super) fn of(rows: Vec<Row>, id: &str, held: Held, is_parallel: bool) -> Self {
        let ids = rows.iter().map(|row| row.id).collect();
        let (mut good, mut bad) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            match row.judge(id, held) {
                Ok(arrival) => good.push((row, arrival)),
                Err(reason) => bad.push((row, reason)),
            }
        }
        Self { batches: Batch::of(good, is_parallel), bad, ids }
    }
}

/// What became of rows.
pub(super) struct Carried {
    /// These have arrived, and are to be removed.
    pub(super) gone: Vec<Row>,
    /// All have; what was looked at meanwhile may follow.
    pub(super) is_smooth: bool,
    pub(super) fault: Option<Failed>,
}

impl Carried {
    fn nothing() -> Self {
        Self { gone: Vec::new(), is_smooth: true, fault: None }
    }

    fn add(&mut self, other: Self) {
        self.gone.extend(other.gone);
        self.is_smooth &= other.is_smooth;
        self.fault = match (self.fault.take(), other.fault) {
            (Some(Failed { what, is_everywhere }), Some(later)) => {
                Some(Failed { what, is_everywhere: is_everywhere | later.is_everywhere })
            }
            (one, other) => one.or(other),
        };
    }

    /// Something was held up by a fault; whatever was not answered by `until` may concern one queue alone.
    fn failed(&mut self, done: Result<()>, until: Instant) {
        if let Err(what) = done {
            let is_everywhere = (what.is_unavailable() && Instant::now() < until) || what.is_closed();
            self.add(Self { fault: Some(Failed { what, is_everywhere }), is_smooth: false, ..Self::nothing() });
        }
    }

    fn is_reached(&self) -> bool {
        !self.fault.as_ref().is_some_and(|fault| fault.is_everywhere)
    }
}

impl Round<'_> {
    /// Delivers what can be delivered, and puts aside what never can. What can't go now stays as it is.
    pub(super) async fn run(mut self, rows: Judged, random: &mut Seeded) -> Carried {
        let Judged { batches, bad, .. } = rows;
        let mut queues = batches.iter().filter_map(|batch| batch.rows.first()).map(|(_, arrival)| &arrival.namespace);
        let first = queues.next();
        if queues.any(|queue| Some(queue) != first) {
            // A queue that does not answer holds the others up for no longer than it has to.
            self.until -= self.until.saturating_duration_since(Instant::now()) / 2;
        }
        let mut carried = Carried::nothing();
        let each = batches.into_iter().map(|batch| self.deliver(batch, Seeded::new(random.next_u64())));
        for batch in join_all(each).await {
            carried.add(batch);
        }
        if !bad.is_empty() && carried.is_reached() {
            let done = self.put_aside(bad, &mut carried).await;
            carried.failed(done, self.closes_until);
        }
        carried
    }

    /// Delivers the rows of a batch.
    async fn deliver(self, batch: Batch, random: Seeded) -> Carried {
        let mut carried = Carried::nothing();
        let done = self.deliver_all(batch, random, &mut carried).await;
        carried.failed(done, self.until);
        carried
    }

    async fn deliver_all(self, mut batch: Batch, mut random: Seeded, carried: &mut Carried) -> Result<()> {
        while let Some((_, Arrival { namespace, .. })) = batch.rows.first() {
            let arrivals = batch.rows.iter().map(|(_, arrival)| (arrival.key.clone(), arrival.job.clone())).collect();
            match self.tell(namespace.clone(), Deliveries::Arrive(arrivals), self.until).await {
                Ok(answers) => return self.settle(batch, answers, carried).await,
                Err(Error::At { index, source }) if source.is_of_one_job() => {
                    let Some(cut) = batch.cut(index) else { return Err(*source) };
                    self.refused(cut, &source, &mut random, carried).await?;
                }
                // It concerns the queue, and so each of them.
                Err(fault) if fault.is_of_one_job() => {
                    while let Some(cut) = batch.cut(0) {
                        self.refused(cut, &fault, &mut random, carried).await?;
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    async fn tell(&self, namespace: Namespace, deliveries: Deliveries, until: Instant) -> Result<Vec<Delivered>> {
        let late = || {
            let why = "did not answer in time".into();
            Error::Unavailable { place: "the ledger".into(), why }
        };
        if Instant::now() >= until {
            return Err(late());
        }
        let answers = self.ledger.deliver(Deliver { namespace, deliveries });
        timeout_at(until, answers).await.unwrap_or_else(|_| Err(late()))
    }

    async fn refused(&self, cut: Cut, fault: &Error, random: &mut Seeded, carried: &mut Carried) -> Result<()> {
        carried.is_smooth = false;
        let Cut { refused, behind } = cut;
        match after_refusal(refused.refusals, random) {
            Next::Later(delay_ms) => {
                let delay = Span::from_millis(delay_ms);
                self.source.defer(&refused, &behind, delay, &fault.to_string()).await
            }
            Next::Quarantine => self.put_aside(vec![(refused, Reason::Refused(fault.to_string()))], carried).await,
        }
    }

    async fn settle(&self, batch: Batch, answers: Vec<Delivered>, carried: &mut Carried) -> Result<()> {
        let (mut closed, before) = (Vec::new(), carried.gone.len() as u64);
        for ((row, _), answer) in batch.rows.into_iter().zip(answers) {
            match answer {
                Delivered::Now { .. } | Delivered::Before(_) => carried.gone.push(row),
                Delivered::Closed | Delivered::Open => closed.push(row),
            }
        }
        metrics::counter!("acta_outbox_delivered_total").increment(carried.gone.len() as u64 - before);
        failpoint("outbox-delivered");
        for row in closed {
            self.quarantine(&row, &Reason::Closed, carried).await?;
        }
        Ok(())
    }

    /// Puts rows into quarantine. Their deliveries are closed first, so that a relay that still has one in hand delivers nothing either.
    async fn put_aside(&self, rows: Vec<(Row, Reason)>, carried: &mut Carried) -> Result<()> {
        carried.is_smooth = false;
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
                None => self.quarantine(&row, &reason, carried).await?,
            }
        }
        for Closing { namespace, keys, rows } in by_queue.into_values() {
            let answers = match self.tell(namespace, Deliveries::Close(keys), self.closes_until).await {
                // The ledger takes nothing for a queue of that name.
                Err(fault) if fault.is_of_one_job() => vec![Delivered::Closed; rows.len()],
                answers => answers?,
            };
            for ((row, reason), answer) in rows.into_iter().zip(answers) {
                match answer {
                    Delivered::Before(_) => carried.gone.push(row),
                    _ => self.quarantine(&row, &reason, carried).await?,
                }
            }
        }
        Ok(())
    }

    async fn quarantine(&self, row: &Row, reason: &Reason, carried: &mut Carried) -> Result<()> {
        carried.is_smooth = false;
        tracing::warn!(row = row.id, %reason, "a row of the outbox is put into quarantine");
        metrics::counter!("acta_outbox_quarantined_total").increment(1);
        self.source.quarantine(row, reason).await
    }
}

/// Deliveries of one queue that are to be closed, and their rows.
struct Closing {
    namespace: Namespace,
    keys: Vec<Label>,
    rows: Vec<(Row, Reason)>,
}

/// What went wrong at first.
pub(super) struct Failed {
    pub(super) what: Error,
    /// The ledger does not answer at all, so that no other queue need be tried.
    pub(super) is_everywhere: bool,
}
