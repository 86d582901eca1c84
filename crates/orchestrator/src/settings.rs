//! From arguments to what the commands work with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acta_core::{Clock, Namespace, Store, SystemClock, Timestamp};
use acta_store::SqliteStore;
use acta_store::sqlite::Options;
use anyhow::Result;

use crate::args::{Args, QueueArgs};
use crate::exit::{Exit, Fault};

/// Where the ledger is, and what keeps it.
#[derive(Debug)]
pub(crate) struct Settings {
    root: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Settings {
    /// Reads what all commands share.
    pub(crate) fn of(args: &Args) -> Result<Self> {
        if args.provider != "sqlite" {
            let message = format!("provider {:?} is not known", args.provider);
            return Err(Fault::new(Exit::Usage, message).hint("this build keeps ledgers in sqlite").into());
        }
        Ok(Self { root: args.root.clone(), clock: Arc::new(SystemClock) })
    }

    /// The instant now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Opens the ledger; an absent one is made.
    pub(crate) fn open(&self) -> Result<Arc<dyn Store>> {
        let options = Options { clock: Arc::clone(&self.clock), ..Options::default() };
        Ok(Arc::new(SqliteStore::open(self.root.join("acta.db"), options)?))
    }

    /// The folder of the logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The ledger's folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

impl QueueArgs {
    /// The namespace that the flags name, if any does.
    pub(crate) fn namespace(&self) -> Result<Option<Namespace>> {
        let named = |flag: &Option<String>, make: fn(&str) -> acta_core::Result<Namespace>| {
            flag.as_deref().map(make).transpose()
        };
        Ok(named(&self.queue, Namespace::job_queue)?
            .or(named(&self.transactions, Namespace::transaction_queue)?)
            .or(named(&self.namespace, Namespace::plain)?))
    }
}
