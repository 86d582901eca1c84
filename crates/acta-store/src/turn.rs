//! Whose turn it is to write, among processes.
//!
//! A lock has no queue, be it SQLite's write lock or that of a folder: whoever asks at the right moment gets it, so a
//! process that writes without a pause starves the others. Here everybody who wants to write first takes the *turn*, an operating system lock on a
//! file of its own, and keeps it until the write lock is theirs. A process that has just committed finds the turn with
//! the next one in line and waits like everybody else. The lock goes with its process. The turn is about fairness
//! alone: where somebody who has it does not move, as a stopped process does, the others go on without it.

use std::cell::Cell;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acta_core::{Error, Result};

/// How long a write waits for the write lock before it gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits for its turn; after that it asks for the write lock out of turn.
const COURTESY: Duration = Duration::from_secs(1);
/// How long it sleeps between two looks.
const PAUSE: Duration = Duration::from_micros(300);

/// The lock that a process holds while it waits for the write lock.
#[derive(Debug)]
pub(crate) struct Turn {
    file: File,
    path: PathBuf,
    /// Somebody has it and does not move: nobody waits for it again until it is found free.
    is_stuck: Cell<bool>,
}

impl Turn {
    /// The turn of the ledger in `ledger`: the file beside it that ends in `-turn`.
    pub(crate) fn of(ledger: &Path) -> Result<Self> {
        let mut name = ledger.as_os_str().to_owned();
        name.push("-turn");
        let path = PathBuf::from(name);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|fault| Error::Unavailable { place: path.display().to_string(), why: fault.to_string() })?;
        Ok(Self { file, path, is_stuck: Cell::new(false) })
    }

    /// Waits for the turn and keeps it while `wait` gets the write lock.
    pub(crate) fn take<T>(&self, wait: impl FnOnce() -> Result<T>) -> Result<T> {
        let file = &self.file;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if !self.is_stuck.get() && start.elapsed() < COURTESY => {
                    std::thread::park_timeout(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    self.is_stuck.set(true);
                    return wait();
                }
                Err(TryLockError::Error(error)) => return Err(self.fault(&error)),
            }
        }
        self.is_stuck.set(false);
        let taken = wait();
        file.unlock().map_err(|error| self.fault(&error))?;
        taken
    }

    fn fault(&self, error: &std::io::Error) -> Error {
        Error::Unavailable { place: self.path.display().to_string(), why: error.to_string() }
    }
}

/// Called by SQLite while another connection holds the lock; true to look again.
#[cfg(feature = "sqlite")]
pub(crate) fn look_again(looks: i32) -> bool {
    std::thread::park_timeout(PAUSE);
    let most = PATIENCE.as_micros() / PAUSE.as_micros();
    u128::from(looks.unsigned_abs()) < most
}
