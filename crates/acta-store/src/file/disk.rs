//! How a file is replaced so that it is there whole, before and after, whatever dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use acta_core::{Error, Result};

use crate::failpoint::failpoint;
use crate::turn::PATIENCE;

/// How long it sleeps between two looks. Only one looks at a time: the others wait for their turn.
const PAUSE: Duration = Duration::from_micros(200);

/// The tick lock: whoever has it is the only one that changes files of this root. It goes with its process.
#[derive(Debug)]
pub(super) struct Tick {
    file: File,
    since: Instant,
}

impl Tick {
    /// Where the lock of `root` is.
    pub(super) fn path(root: &Path) -> PathBuf {
        root.join(".lock")
    }

    /// For how long it is held.
    pub(super) fn held_for(&self) -> Duration {
        self.since.elapsed()
    }

    /// Waits for the lock of `root`, a folder that is there.
    pub(super) fn take(root: &Path) -> Result<Self> {
        let path = Self::path(root);
        // Never renamed or removed: all lock the same file.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|fault| unavailable(&path, fault))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file, since: Instant::now() }),
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => std::thread::park_timeout(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let why = format!("another process has kept the lock for {} s", PATIENCE.as_secs());
                    return Err(Error::Unavailable { place: path.display().to_string(), why });
                }
                Err(TryLockError::Error(fault)) => return Err(unavailable(&path, fault)),
            }
        }
    }
}

/// What tells a file from the one that took its place: when it was written, how long it is, which one it is.
pub(super) type Stamp = (Option<SystemTime>, u64, u64);

/// The stamp of the file at `path`, if there is one.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((metadata.modified().ok(), metadata.len(), number))
}

impl Drop for Tick {
    fn drop(&mut self) {
        // It would go with the file's handle, too.
        let _ = self.file.unlock();
    }
}

pub(super) fn unavailable(path: &Path, fault: impl std::fmt::Display) -> Error {
    Error::Unavailable { place: path.display().to_string(), why: fault.to_string() }
}

/// The bytes of a file; `None` if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(fault) => Err(unavailable(path, fault)),
    }
}

/// Replaces what is in a file, durably; only who has the lock may.
pub(super) fn replace(path: &Path, bytes: &[u8], _tick: &Tick) -> Result<()> {
    // A link stays one: what it leads to is replaced.
    let target = std::fs::canonicalize(path);
    let path = target.as_deref().unwrap_or(path);
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let beside = beside(path);
    let written = write_new(&beside, bytes, path);
    if written.is_err() {
        // What could not be written whole is of no use.
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(|fault| unavailable(&beside, fault))?;
    std::fs::rename(&beside, path).map_err(|fault| unavailable(path, fault))?;
    failpoint("rename");
    sync_folder(folder)?;
    failpoint("folder");
    Ok(())
}

/// Replaces what is in a file without waiting for the disk: after a failure of the machine it may be empty.
pub(super) fn replace_lightly(path: &Path, bytes: &[u8], _tick: &Tick) -> Result<()> {
    let beside = beside(path);
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|fault| unavailable(path, fault))
}

/// Where the new contents of a file are written before they take its place.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

/// Writes a file and waits until it is on the disk.
pub(super) fn write_through(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn write_new(beside: &Path, bytes: &[u8], old: &Path) -> std::io::Result<()> {
    let mut file = File::create(beside)?;
    file.write_all(bytes)?;
    failpoint("write");
    if let Ok(old) = std::fs::metadata(old) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    failpoint("fsync");
    Ok(())
}

pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|handle| handle.sync_all()).map_err(|fault| unavailable(folder, fault))
}

/// Makes a folder and those above it, each of them durably.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new("."));
    make_folder(above)?;
    match std::fs::create_dir(folder) {
        Ok(()) => sync_folder(above),
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(fault) => Err(unavailable(folder, fault)),
    }
}
