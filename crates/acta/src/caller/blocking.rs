//! rusqlite, whose calls block.

use acta_core::store::{Enqueued, NewJob};
use acta_core::{Error, Result};
use acta_store::Opened;
use rusqlite::Transaction;

use super::{Call, Wake, only};
use crate::job::Job;
use crate::ledger::Ledger;
use crate::prepare::{Prepared, new_jobs};

impl Ledger {
    /// Enqueues a job in this open transaction, which must be on the ledger's own file: it is there when that commits, and
    /// never was if it rolls back. No handler starts before.
    ///
    /// It blocks as every call of rusqlite does, and belongs where those are made. Begin the transaction as
    /// `TransactionBehavior::Immediate` where anybody else may write. A second job of the same deduplication key is not added;
    /// the answer is the first one's.
    ///
    /// # Errors
    /// What any enqueue refuses, a connection to another file, and ledgers that are in no SQLite file. Whatever is refused
    /// leaves the transaction as it was.
    pub fn blocking_enqueue_in<J: Job>(&self, transaction: &Transaction<'_>, job: &J) -> Result<(Enqueued, Wake)> {
        self.prepare(job).blocking_enqueue_in(transaction)
    }

    /// The same with several jobs, all or none; one answer each, in order.
    pub fn blocking_enqueue_many_in<'j, J: Job>(
        &self,
        transaction: &Transaction<'_>,
        jobs: impl IntoIterator<Item = &'j J>,
    ) -> Result<(Vec<Enqueued>, Wake)> {
        self.blocking_add_in::<J>(transaction, new_jobs(self.traceparent().as_ref(), jobs)?)
    }

    fn blocking_add_in<J: Job>(
        &self,
        transaction: &Transaction<'_>,
        jobs: Vec<NewJob>,
    ) -> Result<(Vec<Enqueued>, Wake)> {
        let call = Call::new::<J>(self, jobs)?;
        let definition = (!self.is_defined::<J>()).then_some(&call.definition);
        let added = match call.ledger {
            Opened::Sqlite(_) if call.enqueue.jobs.is_empty() => Vec::new(),
            Opened::Sqlite(store) => store.enqueue_on(transaction, &call.enqueue, definition)?,
            #[allow(unreachable_patterns, reason = "with other features there are others")]
            _ => return Err(Opened::is_elsewhere("SQLite")),
        };
        Ok((added, call.wake()))
    }
}

impl<J: Job> Prepared<'_, J> {
    /// Enqueues it in this open transaction, as [`Ledger::blocking_enqueue_in`] does.
    pub fn blocking_enqueue_in(self, transaction: &Transaction<'_>) -> Result<(Enqueued, Wake)> {
        let (ledger, job) = self.into_parts();
        let added = ledger.blocking_add_in::<J>(transaction, vec![job?]).map_err(Error::alone)?;
        only(added)
    }
}
