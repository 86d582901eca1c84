//! Whole ledgers: copies, backups, and what is wrong.

use std::path::Path;

use super::{Keeper, Shelf};
use crate::book::Common;
use crate::error::Result;
use crate::name::Namespace;
use crate::store::{Evidence, Finding, Mark, Parcel};

impl<K: Keeper> Shelf<K> {
    /// [`crate::Store::export`].
    pub fn export(&mut self, namespace: Option<&Namespace>) -> Result<Parcel> {
        let Some(namespace) = namespace else {
            return Ok(Parcel { common: self.keeper.common()?, contents: None });
        };
        let book = self.book(namespace)?;
        let common = book.common().clone();
        Ok(Parcel { common, contents: Some(book.into_contents()) })
    }

    /// [`crate::Store::import`].
    pub fn import(&mut self, parcel: Parcel) -> Result<()> {
        let openness = self.keeper.common()?.openness;
        openness.check_arriving(self.keeper.place())?;
        let mut common: Common = parcel.common;
        common.openness = openness;
        // Numbers first, as ever.
        self.keeper.save_common(&common)?;
        match parcel.contents {
            Some(contents) if self.find(&contents.queue.namespace)?.is_none() => {
                let namespace = contents.queue.namespace.clone();
                self.keeper.save(contents)?;
                self.changes.note(&namespace);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// [`crate::Store::mark`].
    pub fn mark(&mut self, mark: &Mark) -> Result<()> {
        let mut common = self.keeper.common()?;
        let mut evidence = Evidence { is_used: common.names().next().is_some(), held: None };
        for namespace in self.keeper.namespaces()? {
            evidence.is_used = true;
            let book = self.book(&namespace)?;
            evidence.held = evidence.held.or_else(|| book.contents().held(self.clock.now()));
        }
        let after = common.openness.after(mark, &evidence, self.keeper.place())?;
        if after == common.openness {
            return Ok(());
        }
        common.openness = after;
        self.keeper.save_common(&common)?;
        self.changes.note_all();
        Ok(())
    }

    /// [`crate::Store::backup`].
    pub fn backup(&mut self, path: &Path) -> Result<()> {
        self.keeper.backup(path)
    }

    /// [`crate::Store::examine`].
    pub fn examine(&mut self) -> Result<Vec<Finding>> {
        self.keeper.examine()
    }
}
