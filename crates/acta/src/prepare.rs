//! A job on its way into the ledger.

use std::marker::PhantomData;
use std::time::Duration;

use acta_core::store::{Dedup, Enqueued, NewJob};
use acta_core::{Backoff, Json, Label, Result, Span, Timestamp, Traceparent};

use crate::job::{Job, name_of, namespace_of};
use crate::ledger::{Ledger, unwritable};

/// A job that is about to be enqueued. What is said here goes before what the job and its type say.
#[must_use = "nothing is enqueued before `enqueue` is called"]
#[derive(Debug)]
pub struct Prepared<'l, J> {
    ledger: &'l Ledger,
    /// Whatever was wrong is told when it is enqueued.
    job: Result<NewJob>,
    of: PhantomData<fn(&J)>,
}

/// The job of a value, as its type says.
fn new_job<J: Job>(traceparent: Option<Traceparent>, job: &J) -> Result<NewJob> {
    let text = serde_json::to_string(job).map_err(|fault| unwritable("payload", &fault))?;
    let label = |what, text: Option<String>| text.map(|text| Label::new(what, &text)).transpose();
    let dedup = label("dedup key", job.dedup_key())?;
    Ok(NewJob {
        name: Some(name_of::<J>()?),
        lane: label("lane", job.lane())?,
        key: label("key", job.key())?,
        dedup: dedup.map(|key| Dedup { key, while_live: J::DEDUP_WHILE_LIVE }),
        traceparent,
        ..NewJob::new(Json::new(text)?)
    })
}

/// The jobs of values of one type, in order.
pub(crate) fn new_jobs<'j, J: Job>(
    traceparent: Option<&Traceparent>,
    jobs: impl IntoIterator<Item = &'j J>,
) -> Result<Vec<NewJob>> {
    let new = |(index, job)| new_job(traceparent.cloned(), job).map_err(|fault| fault.at(index));
    jobs.into_iter().enumerate().map(new).collect()
}

impl<'l, J: Job> Prepared<'l, J> {
    pub(crate) fn new(ledger: &'l Ledger, job: &J) -> Self {
        Self { ledger, job: new_job(ledger.traceparent(), job), of: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut NewJob) -> Result<()>) -> Self {
        self.job = self.job.and_then(|mut job| change(&mut job).map(|()| job));
        self
    }

    fn after(&self, duration: Duration) -> Timestamp {
        self.ledger.clock().now().plus_ms(Span::of(duration).as_millis())
    }

    /// The line to stand in.
    pub fn lane(self, lane: &str) -> Self {
        self.with(|job| Label::new("lane", lane).map(|lane| job.lane = Some(lane)))
    }

    /// The business key.
    pub fn key(self, key: &str) -> Self {
        self.with(|job| Label::new("key", key).map(|key| job.key = Some(key)))
    }

    /// The deduplication key.
    pub fn dedup_key(self, key: &str) -> Self {
        let dedup = |key| Dedup { key, while_live: J::DEDUP_WHILE_LIVE };
        self.with(|job| Label::new("dedup key", key).map(|key| job.dedup = Some(dedup(key))))
    }

    /// 0 to 100, higher first; only in a plain namespace.
    pub fn priority(self, priority: u8) -> Self {
        self.with(|job| {
            job.priority = Some(priority);
            Ok(())
        })
    }

    /// Not to be run before.
    pub fn run_at(self, instant: Timestamp) -> Self {
        self.with(|job| {
            job.run_at = Some(instant);
            Ok(())
        })
    }

    /// Not to be run before so long has passed.
    pub fn delay(self, duration: Duration) -> Self {
        let instant = self.after(duration);
        self.run_at(instant)
    }

    /// To be given up if nobody has begun it by then.
    pub fn expires_at(self, instant: Timestamp) -> Self {
        self.with(|job| {
            job.expires_at = Some(instant);
            Ok(())
        })
    }

    /// To be given up if nobody has begun it after so long.
    pub fn expires_in(self, duration: Duration) -> Self {
        let instant = self.after(duration);
        self.expires_at(instant)
    }

    /// For how long a claim lasts without a heartbeat.
    pub fn lease(self, duration: Duration) -> Self {
        self.with(|job| {
            job.lease = Some(Span::of(duration));
            Ok(())
        })
    }

    /// How many times it may be tried.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|job| {
            job.max_attempts = Some(attempts);
            Ok(())
        })
    }

    /// The delay between attempts.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|job| {
            job.backoff = Some(backoff);
            Ok(())
        })
    }

    /// The trace that the job belongs to: the value of a header `traceparent`. Without it, what [`Ledger::traced_by`] says.
    pub fn traceparent(self, header: &str) -> Self {
        self.with(|job| Traceparent::new(header).map(|parent| job.traceparent = Some(parent)))
    }

    /// The ledger, and the job as it is by now.
    #[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
    pub(crate) fn into_parts(self) -> (&'l Ledger, Result<NewJob>) {
        (self.ledger, self.job)
    }

    /// Enqueues it. It is durable when this answers.
    pub async fn enqueue(self) -> Result<Enqueued> {
        let job = self.job?;
        self.ledger.define::<J>().await?;
        self.ledger.send(namespace_of::<J>()?, job).await
    }
}
