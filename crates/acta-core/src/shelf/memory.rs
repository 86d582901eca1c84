//! A ledger in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Access, Keeper, Shared, Shelf};
use crate::book::{Common, Contents};
use crate::changes::Changes;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::name::Namespace;
use crate::random::Random;
use crate::store::Finding;
use crate::vitals::Vitals;

/// A ledger in memory: the specification as a store. It ends with its process.
#[derive(Debug)]
pub struct MemoryStore {
    shelf: Mutex<Shelf<Memory>>,
    changes: Arc<Changes>,
}

/// What a ledger in memory keeps.
#[derive(Debug, Default)]
pub struct Memory {
    books: BTreeMap<Namespace, Contents>,
    common: Common,
    vitals: BTreeMap<Namespace, Vitals>,
}

impl MemoryStore {
    /// An empty ledger.
    pub fn new(clock: Arc<dyn Clock>, random: Box<dyn Random>) -> Self {
        let shelf = Shelf::new(Memory::default(), clock, random);
        Self { changes: Arc::clone(shelf.changes()), shelf: Mutex::new(shelf) }
    }
}

impl Shared for MemoryStore {
    type Keeper = Memory;

    async fn run<T: Send>(
        &self,
        _access: Access,
        verb: impl FnOnce(&mut Shelf<Memory>) -> Result<T> + Send,
    ) -> Result<T> {
        verb(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        Ok(self.changes.watch(&namespace).after(seen).await)
    }
}

impl Keeper for Memory {
    fn namespaces(&mut self) -> Result<Vec<Namespace>> {
        Ok(self.books.keys().cloned().collect())
    }

    fn load(&mut self, namespace: &Namespace) -> Result<Option<Contents>> {
        Ok(self.books.get(namespace).cloned())
    }

    fn save(&mut self, contents: Contents) -> Result<()> {
        self.books.insert(contents.queue.namespace.clone(), contents);
        Ok(())
    }

    fn put_back(&mut self, _contents: Contents) {}

    fn vitals(&mut self, namespace: &Namespace) -> Result<Vitals> {
        Ok(self.vitals.get(namespace).cloned().unwrap_or_default())
    }

    fn save_vitals(&mut self, namespace: &Namespace, vitals: Vitals) -> Result<()> {
        self.vitals.insert(namespace.clone(), vitals);
        Ok(())
    }

    fn place(&self) -> String {
        "memory".into()
    }

    fn backup(&mut self, path: &Path) -> Result<()> {
        let why = "books in memory have no files";
        Err(Error::Unavailable { place: path.display().to_string(), why: why.into() })
    }

    fn examine(&mut self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    fn common(&mut self) -> Result<Common> {
        Ok(self.common.clone())
    }

    fn save_common(&mut self, common: &Common) -> Result<()> {
        self.common = common.clone();
        Ok(())
    }
}
