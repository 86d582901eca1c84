//! A copy of a ledger's files.

use std::path::{Path, PathBuf};

use acta_core::Result;

use super::disk::{self, unavailable};

/// Copies `files`, all below `root`, to the same places below `to`, where nothing may be yet.
///
/// The copy is made beside, and takes its name when it is whole.
pub(super) fn copy(root: &Path, files: &[PathBuf], to: &Path) -> Result<()> {
    crate::filesystem::refuse_existing(to)?;
    let beside = crate::filesystem::beside(to);
    disk::make_folder(&beside)?;
    for file in files {
        let Some(bytes) = disk::read(file)? else { continue };
        let below = file.strip_prefix(root).map_err(|fault| unavailable(file, fault))?;
        let copied = beside.join(below);
        disk::make_folder(copied.parent().unwrap_or(&beside))?;
        disk::write_through(&copied, &bytes).map_err(|fault| unavailable(&copied, fault))?;
        disk::sync_folder(copied.parent().unwrap_or(&beside))?;
    }
    crate::filesystem::rename_new(&beside, to)?;
    disk::sync_folder(to.parent().unwrap_or(Path::new(".")))
}
