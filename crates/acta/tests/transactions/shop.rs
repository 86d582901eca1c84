//! The application: a table of orders, and a transaction that is open between two calls.

use std::future::Future;
use std::path::PathBuf;

use acta::{Enqueued, Job, Ledger, Result, Wake};
use acta_testkit::postgres::{Database, Server};
use tempfile::TempDir;

use super::Ship;

/// A database with a ledger of its own; gone with the test.
pub(crate) struct Place {
    pub(crate) url: String,
    folder: Option<TempDir>,
    _database: Option<Database>,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("acta.db").display());
        Self { url, folder: Some(folder), _database: None }
    }

    pub(crate) fn postgres() -> Self {
        let database = Database::new(Server::shared_url(), None);
        Self { url: database.url(), folder: None, _database: Some(database) }
    }

    /// A process that has the ledger open.
    pub(crate) async fn ledger(&self) -> Ledger {
        Ledger::open(&self.url).await.unwrap()
    }

    /// The ledger's file, or one beside it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().join(name)
    }
}

/// The application's connection, by one driver.
pub(crate) trait Shop: Sized {
    async fn open(place: &Place) -> Self;
    async fn begin(&mut self);
    async fn commit(&mut self);
    async fn rollback(&mut self);
    /// Writes the row of an order.
    async fn order(&mut self, number: u32);
    /// How many orders there are.
    async fn orders(&mut self) -> i64;
    async fn enqueue<J: Job>(&mut self, ledger: &Ledger, job: &J) -> Result<(Enqueued, Wake)>;
    async fn enqueue_many(&mut self, ledger: &Ledger, jobs: &[Ship]) -> Result<(Vec<Enqueued>, Wake)>;
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(scenario);
}

pub(crate) fn on_sqlite<F: Future<Output = ()>>(scenario: impl FnOnce(Place) -> F) {
    run(scenario(Place::sqlite()));
}

pub(crate) fn on_postgres<F: Future<Output = ()>>(scenario: impl FnOnce(Place) -> F) {
    run(scenario(Place::postgres()));
}
