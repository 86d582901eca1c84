//! Jobs in a transaction of the application's own: they are there when it commits, and never were if it does not.

use acta_core::store::{Enqueue, Enqueued, NewJob};
use acta_core::{Definition, Error, Namespace, Result};
use acta_store::Opened;

use crate::job::{Job, definition_of, namespace_of};
use crate::ledger::Ledger;
use crate::prepare::{Prepared, new_jobs};

/// Word for the workers that wait, to be sent behind the commit.
///
/// It only saves time. Where it is forgotten, or sent too early, workers find the jobs when they next look by themselves: on
/// SQLite after 25 ms, on PostgreSQL after their [`crate::Worker::poll`].
#[derive(Clone, Debug)]
#[must_use = "waiting workers start at once if it is sent after the commit; without it, when they next look"]
pub struct Wake {
    ledger: Opened,
    namespace: Namespace,
}

impl Wake {
    /// Tells waiting workers, in this process and in others, that there are jobs.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "a database is told by a call"))]
    pub async fn send(self) {
        match self.ledger {
            #[cfg(feature = "sqlite")]
            Opened::Sqlite(store) => store.wake(&self.namespace),
            #[cfg(feature = "postgres")]
            Opened::Postgres(store) => store.wake(&self.namespace).await,
            #[cfg(feature = "file")]
            Opened::File(_) => {}
        }
    }
}

/// What is about to be enqueued in a transaction.
struct Call<'l> {
    ledger: &'l Opened,
    enqueue: Enqueue,
    definition: Definition,
}

impl<'l> Call<'l> {
    fn new<J: Job>(ledger: &'l Ledger, jobs: Vec<NewJob>) -> Result<Self> {
        let ledger = ledger.opened()?;
        #[cfg(feature = "file")]
        if let Opened::File(_) = ledger {
            let why = "is kept in files, which no transaction of a database reaches: enqueue behind the commit, or keep the \
                       ledger in the database";
            return Err(Error::invalid("ledger", "file:", why));
        }
        let (enqueue, definition) = (Enqueue { namespace: namespace_of::<J>()?, jobs }, definition_of::<J>()?);
        // What can be refused is refused here: on PostgreSQL an error costs the caller its transaction.
        enqueue.check()?;
        for (index, job) in enqueue.jobs.iter().enumerate() {
            job.check(enqueue.namespace.family(), Some(&definition)).map_err(|fault| fault.at(index))?;
        }
        Ok(Self { ledger, enqueue, definition })
    }

    fn wake(&self) -> Wake {
        Wake { ledger: self.ledger.clone(), namespace: self.enqueue.namespace.clone() }
    }
}

/// The only answer of a call for one job, whose fault knows of no batch.
fn only((answers, wake): (Vec<Enqueued>, Wake)) -> Result<(Enqueued, Wake)> {
    let gone = || Error::Unreadable { place: "the ledger".into(), why: "has answered for no job".into() };
    answers.into_iter().next().map(|added| (added, wake)).ok_or_else(gone)
}

#[cfg(any(feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
mod waiting {
    use std::time::Duration;

    use acta_store::Caller;

    use super::{Call, Enqueued, Error, Job, Ledger, NewJob, Opened, Prepared, Result, Wake, new_jobs, only};

    /// How long the registration of a definition may take while the caller's transaction is open.
    const PATIENCE: Duration = Duration::from_secs(5);

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
            self.add_in::<J, C>(caller, new_jobs(jobs)?).await
        }

        async fn add_in<J: Job, C: Caller>(&self, caller: &mut C, jobs: Vec<NewJob>) -> Result<(Vec<Enqueued>, Wake)> {
            let call = Call::new::<J>(self, jobs)?;
            // On SQLite the caller may be the one who writes: the definition goes along in its transaction.
            #[cfg(feature = "postgres")]
            if matches!(call.ledger, Opened::Postgres(_)) {
                self.define_in_time::<J>().await?;
            }
            if call.enqueue.jobs.is_empty() {
                return Ok((Vec::new(), call.wake()));
            }
            let definition = (!self.is_defined::<J>()).then_some(&call.definition);
            let added = caller.enqueue(call.ledger, &call.enqueue, definition).await?;
            Ok((added, call.wake()))
        }

        /// Registers the definition on a connection of the ledger's own, so that nobody has to wait for the caller's commit to
        /// register it again. Only a transaction that has used the very name for the first time, by SQL, is in its way.
        #[cfg(feature = "postgres")]
        async fn define_in_time<J: Job>(&self) -> Result<()> {
            tokio::time::timeout(PATIENCE, self.define::<J>()).await.unwrap_or_else(|_| {
                let why = "its definition can't be registered: somebody's open transaction, perhaps this one, has used the name \
                           for the first time; call `Ledger::define` before it begins";
                Err(Error::Unavailable { place: J::NAME.into(), why: why.into() })
            })
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
}

#[cfg(feature = "rusqlite")]
mod blocking {
    use rusqlite::Transaction;

    use super::{Call, Enqueued, Error, Job, Ledger, NewJob, Opened, Prepared, Result, Wake, new_jobs, only};

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
            self.blocking_add_in::<J>(transaction, new_jobs(jobs)?)
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
                _ => {
                    let why = "does not lead to the ledger, which is kept in something else";
                    return Err(Error::invalid("connection to", "SQLite", why));
                }
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
}
