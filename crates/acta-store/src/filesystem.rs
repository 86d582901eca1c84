//! What a ledger needs of the file system that it is on.

use std::path::Path;

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
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(told) = rustix::fs::statfs(parent) else { return Ok(()) };
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
