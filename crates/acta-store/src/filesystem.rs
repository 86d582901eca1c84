//! What a ledger needs of the file system that it is on.

use std::path::Path;
#[cfg(any(feature = "sqlite", feature = "file"))]
use std::path::PathBuf;

#[cfg(any(feature = "sqlite", feature = "file"))]
use acta_core::store::Finding;
use acta_core::{Error, Result};

/// File systems without the locks and shared memory that a ledger on one machine relies on, by their magic numbers
/// (`statfs(2)`).
const NETWORK: [(i64, &str); 7] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x7375_7245, "Coda"),
    (0x6b41_4653, "AFS"),
];

/// Makes the folders above `path`.
pub fn make_parents(path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(parent)
        .map_err(|fault| Error::Unavailable { place: parent.display().to_string(), why: fault.to_string() })
}

/// Refuses a folder on a network file system, where it can be told.
pub fn refuse_network(path: &Path) -> Result<()> {
    // What is not there yet will be on the file system of what is above it.
    let here = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Some(told) = here.ancestors().skip(1).find_map(|above| rustix::fs::statfs(above).ok()) else { return Ok(()) };
    match network_name(told.f_type) {
        Some(name) => Err(Error::Unavailable {
            place: path.display().to_string(),
            why: format!(
                "is on {name}, a network file system, whose locks can't be relied on; put the ledger on a local disk"
            ),
        }),
        None => Ok(()),
    }
}

/// A path that can't be written, if that is so.
#[cfg(any(feature = "sqlite", feature = "file"))]
pub(crate) fn unwritable(path: &Path) -> Option<Finding> {
    let fault = rustix::fs::access(path, rustix::fs::Access::WRITE_OK).err()?;
    if fault == rustix::io::Errno::NOENT {
        return None;
    }
    let fix = "let the user that runs this write there, or run this as the one who may";
    Some(Finding::new(path.display(), format!("can't be written: {fault}"), fix))
}

/// Refuses a place where there is something.
#[cfg(any(feature = "sqlite", feature = "file"))]
pub(crate) fn refuse_existing(path: &Path) -> Result<()> {
    if std::fs::symlink_metadata(path).is_ok() {
        let why = "is there already; a backup writes over nothing, name another path";
        return Err(Error::invalid("path", &path.display().to_string(), why));
    }
    Ok(())
}

/// Gives what was made the name `to`, if there is nothing of that name.
#[cfg(any(feature = "sqlite", feature = "file"))]
pub(crate) fn rename_new(from: &Path, to: &Path) -> Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => refuse_existing(to),
        // Not every file system can do it in one step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            refuse_existing(to)?;
            std::fs::rename(from, to)
                .map_err(|fault| Error::Unavailable { place: to.display().to_string(), why: fault.to_string() })
        }
        done => done.map_err(|fault| Error::Unavailable { place: to.display().to_string(), why: fault.to_string() }),
    }
}

/// Where something is made before it takes the name `path`; by everybody in another place.
#[cfg(any(feature = "sqlite", feature = "file"))]
pub(crate) fn beside(path: &Path) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}-{number}.partial", std::process::id()))
}

fn network_name(magic: i64) -> Option<&'static str> {
    NETWORK.into_iter().find(|(number, _)| *number == magic & 0xffff_ffff).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c145_network_file_systems_are_known_by_their_numbers() {
        assert_eq!(network_name(0x6969), Some("NFS"));
        assert_eq!(network_name(0xff53_4d42), Some("CIFS"));
        // As a 32-bit kernel would sign it.
        assert_eq!(network_name(i64::from(0xff53_4d42_u32.cast_signed())), Some("CIFS"));
        assert_eq!(network_name(0xef53), None, "ext4");
    }
}
