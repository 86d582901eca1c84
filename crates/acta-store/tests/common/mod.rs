//! Providers for the testkit, and children for the tests of processes. Each test uses some of it.
#![allow(dead_code, reason = "compiled into several tests, none of which uses all")]

use std::any::Any;
use std::sync::Arc;

use acta_core::Store;
use acta_store::sqlite::{Options, Synchronous};
use acta_store::{FileStore, SqliteStore, file};
use acta_testkit::desk::Given;

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

pub(crate) mod child;
