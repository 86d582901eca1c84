//! Jobs in a transaction of the application's own: they are there when it commits, and never were if it does not.

#[cfg(feature = "rusqlite")]
mod blocking;
#[cfg(any(feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
mod waiting;

use acta_core::store::{Enqueue, Enqueued, NewJob};
use acta_core::{Definition, Error, Namespace, Result};
use acta_store::Opened;

use crate::job::{Job, definition_of, namespace_of};
use crate::ledger::Ledger;

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
