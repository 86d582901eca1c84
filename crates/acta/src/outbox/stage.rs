//! Staging typed jobs in an open transaction of the application's.

use acta_core::Result;
use acta_core::relay::Staged;
use acta_store::outbox::TableName;

use crate::job::{Job, namespace_of};
use crate::prepare::new_jobs;

/// The outbox in the application's own database, from the side of the application: what is staged in its transaction arrives in the
/// ledger once that has committed, and never if it rolls back.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    table: TableName,
}

impl Outbox {
    /// The outbox in the table of this name; [`Outbox::default`] is the usual one.
    pub fn new(table: TableName) -> Self {
        Self { table }
    }

    /// Stages a job in the transaction that is open on this connection.
    #[cfg(any(
        feature = "mysql-async",
        feature = "sqlx-mysql",
        feature = "sqlx-sqlite",
        feature = "sqlx-postgres",
        feature = "tokio-postgres"
    ))]
    pub async fn stage_in<J: Job>(&self, connection: &mut impl acta_store::outbox::Stager, job: &J) -> Result<()> {
        connection.stage(&self.table, &staged([job])?).await
    }

    /// Stages jobs, one behind another, in the transaction that is open on this connection.
    #[cfg(any(
        feature = "mysql-async",
        feature = "sqlx-mysql",
        feature = "sqlx-sqlite",
        feature = "sqlx-postgres",
        feature = "tokio-postgres"
    ))]
    pub async fn stage_many_in<J: Job>(
        &self,
        connection: &mut impl acta_store::outbox::Stager,
        jobs: &[J],
    ) -> Result<()> {
        connection.stage(&self.table, &staged(jobs)?).await
    }

    /// Stages jobs, one behind another, in a transaction of rusqlite.
    #[cfg(feature = "rusqlite")]
    pub fn blocking_stage_in<J: Job>(&self, transaction: &rusqlite::Transaction<'_>, jobs: &[J]) -> Result<()> {
        acta_store::outbox::stage_blocking(transaction, &self.table, &staged(jobs)?)
    }
}

/// The rows of typed jobs; what is wrong with one is told with its place.
fn staged<'j, J: Job>(jobs: impl IntoIterator<Item = &'j J>) -> Result<Vec<Staged>> {
    let namespace = namespace_of::<J>()?;
    let jobs = new_jobs(crate::traced::of_job().as_ref(), jobs)?;
    jobs.iter().enumerate().map(|(index, job)| Staged::of(&namespace, job).map_err(|fault| fault.at(index))).collect()
}
