//! Providers for the testkit, and children for the tests of processes. Each test uses some of it.
#![allow(dead_code, reason = "compiled into several tests, none of which uses all")]

use std::any::Any;
use std::sync::{Arc, OnceLock};

use acta_core::Store;
use acta_store::sqlite::{Options, Synchronous};
use acta_store::{FileStore, PostgresStore, SqliteStore, file, postgres};
use acta_testkit::desk::Given;
use acta_testkit::postgres::{Database, Server, sql};

/// An empty ledger in a folder of its own.
pub(crate) fn sqlite(given: Given) -> (Arc<dyn Store>, Box<dyn Any + Send + Sync>) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { synchronous: Synchronous::Normal, clock: given.clock, random: Some(given.random) };
    let store = SqliteStore::open(folder.path().join("acta.db"), options).unwrap();
    (Arc::new(store), Box::new(folder))
}

/// The same, in files.
pub(crate) fn files(given: Given) -> (Arc<dyn Store>, Box<dyn Any + Send + Sync>) {
    let folder = tempfile::tempdir().unwrap();
    let options = file::Options { clock: given.clock, random: Some(given.random) };
    let store = FileStore::open(folder.path().join("ledger"), options).unwrap();
    (Arc::new(store), Box::new(folder))
}

/// The same, in a database of its own.
pub(crate) fn postgres(given: Given) -> (Arc<dyn Store>, Box<dyn Any + Send + Sync>) {
    let database = Database::new(Server::shared_url(), Some(template()));
    let options =
        postgres::Options { clock: Some(given.clock), random: Some(given.random), ..postgres::Options::default() };
    let store = PostgresStore::new(&database.url().parse().unwrap(), options).unwrap();
    (Arc::new(store), Box::new(Checked(database)))
}

/// A database whose rows are looked at when its test is over: what the functions keep twice agrees.
struct Checked(Database);

impl Drop for Checked {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let drifted = sql(&self.0.url(), include_str!("../../src/postgres/sql/drifted.sql"));
            assert_eq!(drifted.unwrap(), ["0"], "jobs that are not found when they are due");
        }
    }
}

/// A database with an empty ledger, to be copied.
pub(crate) fn template() -> &'static Database {
    static TEMPLATE: OnceLock<Database> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let database = Database::new(Server::shared_url(), None);
        let url = database.url();
        // On a thread of its own: the caller may be on a runtime already.
        std::thread::spawn(move || {
            acta_testkit::block_on(async {
                PostgresStore::new(&url.parse().unwrap(), postgres::Options::default())
                    .unwrap()
                    .create_or_accept()
                    .await
                    .unwrap();
            });
        })
        .join()
        .unwrap();
        database
    })
}

pub(crate) mod child;
pub(crate) mod session;
