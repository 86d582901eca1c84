//! Jobs in a transaction of the caller's own.

use std::future::Future;

use acta_core::store::{Enqueue, Enqueued};
use acta_core::{Definition, Result};

use crate::Opened;

/// What only the drivers of this crate are.
pub trait Sealed {}

/// A connection of the caller's, in whose open transaction jobs are enqueued.
///
/// These are `sqlx::SqliteConnection` (with the feature `sqlx-sqlite`), `sqlx::PgConnection` (`sqlx-postgres`), and
/// `tokio_postgres::Client` and `tokio_postgres::Transaction` (`tokio-postgres`). Whatever derefs to one of them, as a
/// transaction of sqlx or of deadpool does, is handed in as `&mut *transaction`.
pub trait Caller: Sealed + Send {
    /// Adds jobs, all or none; one answer a job, in order. What every ledger would refuse was refused before.
    ///
    /// `definition` is what the type of the jobs says, if the ledger may not know it yet: on SQLite it goes along.
    #[doc(hidden)]
    fn enqueue(
        &mut self,
        ledger: &Opened,
        enqueue: &Enqueue,
        definition: Option<&Definition>,
    ) -> impl Future<Output = Result<Vec<Enqueued>>> + Send;
}
