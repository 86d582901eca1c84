//! Drivers whose calls are awaited.

use acta_core::store::{Enqueued, NewJob};
use acta_core::{Error, Result};
use acta_store::{Caller, Opened};

use super::{Call, Wake, only};
use crate::job::Job;
use crate::ledger::Ledger;
use crate::prepare::{Prepared, new_jobs};

impl Ledger {
    /// Enqueues a job in the caller's open transaction: it is there when that commits, and never was if it rolls back. No
    /// handler starts before.
    ///
    /// The connection leads to the ledger's own database: `&mut *transaction` of sqlx, `&mut transaction` of tokio-postgres.
    /// See [`Caller`]. A second job of the same deduplication key is not added; the answer is the first one's.
    ///
    /// # Errors
    /// What any enqueue refuses, a connection that leads elsewhere, and ledgers that no transaction reaches: those in files and
    /// those over a store of the application's own. On SQLite whatever is refused leaves the transaction as it was; on
    /// PostgreSQL what only the database refuses ends it, like any failed statement.
    pub async fn enqueue_in<J: Job, C: Caller>(&self, caller: &mut C, job: &J) -> Result<(Enqueued, Wake)> {
        self.prepare(job).enqueue_in(caller).await
    }

    /// The same with several jobs, all or none; one answer each, in order.
    pub async fn enqueue_many_in<'j, J: Job, C: Caller>(
        &self,
        caller: &mut C,
        jobs: impl IntoIterator<Item = &'j J>,
    ) -> Result<(Vec<Enqueued>, Wake)> {
        self.add_in::<J, C>(caller, new_jobs(self.traceparent().as_ref(), jobs)?).await
    }

    async fn add_in<J: Job, C: Caller>(&self, caller: &mut C, jobs: Vec<NewJob>) -> Result<(Vec<Enqueued>, Wake)> {
        let call = Call::new::<J>(self, jobs)?;
        self.define_beside::<J>(call.ledger).await?;
        if call.enqueue.jobs.is_empty() {
            return Ok((Vec::new(), call.wake()));
        }
        let definition = (!self.is_defined::<J>()).then_some(&call.definition);
        let added = caller.enqueue(call.ledger, &call.enqueue, definition).await?;
        Ok((added, call.wake()))
    }

    /// On PostgreSQL, registers the definition on a connection of the ledger's own, so that nobody has to wait for the caller's
    /// commit to register it, too. Only a transaction that has used the very name for the first time, by SQL, is in its way.
    ///
    /// On SQLite the caller may be the one who writes: there the definition goes along in its transaction.
    async fn define_beside<J: Job>(&self, ledger: &Opened) -> Result<()> {
        match ledger {
            #[cfg(feature = "postgres")]
            Opened::Postgres(_) => {
                let patience = std::time::Duration::from_secs(5);
                tokio::time::timeout(patience, self.define::<J>()).await.unwrap_or_else(|_| {
                    let why = "its definition can't be registered: somebody's open transaction, perhaps this one, has used the \
                               name for the first time; call `Ledger::define` before it begins";
                    Err(Error::Unavailable { place: J::NAME.into(), why: why.into() })
                })
            }
            #[allow(unreachable_patterns, reason = "with other features there are others")]
            _ => Ok(()),
        }
    }
}

impl<J: Job> Prepared<'_, J> {
    /// Enqueues it in the caller's open transaction, as [`Ledger::enqueue_in`] does.
    pub async fn enqueue_in<C: Caller>(self, caller: &mut C) -> Result<(Enqueued, Wake)> {
        let (ledger, job) = self.into_parts();
        let added = ledger.add_in::<J, C>(caller, vec![job?]).await.map_err(Error::alone)?;
        only(added)
    }
}
