//! What a job wrote, kept on the machine that ran it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use acta_core::JobId;
use anyhow::{Context, Result};

/// How much of one job's output is kept, in bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The file of a job's output. An id is a safe name: letters, digits, dots, underscores and hyphens, no dot first.
pub(crate) fn log_path(folder: &Path, id: &JobId) -> PathBuf {
    folder.join(format!("{id}.log"))
}

/// A job's output, growing up to a bound; later attempts go on behind the earlier ones.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    left: u64,
}

impl LogFile {
    /// Makes the folder of the logs.
    pub(crate) fn prepare(folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: no log can be kept there", folder.display()))
    }

    /// Opens the log of a job, or makes it.
    pub(crate) fn open(folder: &Path, id: &JobId) -> Result<Self> {
        let path = log_path(folder, id);
        let open = || -> std::io::Result<Self> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let left = MOST_BYTES.saturating_sub(file.metadata()?.len());
            Ok(Self { file, left })
        };
        open().with_context(|| format!("{}: the log can't be written", path.display()))
    }

    /// Appends a line. A log that can't be written any more does not stop the job.
    pub(crate) fn line(&mut self, line: &str) {
        if self.left == 0 {
            return;
        }
        let size = line.len() as u64 + 1;
        let text = if size <= self.left {
            self.left -= size;
            line
        } else {
            self.left = 0;
            "[the log is full; what came after is not kept]"
        };
        let _ = writeln!(self.file, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_goes_on_behind_earlier_attempts() {
        let folder = tempfile::tempdir().unwrap();
        let id = JobId::new("a-item-1").unwrap();
        for _ in 0..2 {
            let mut log = LogFile::open(folder.path(), &id).unwrap();
            for _ in 0..1_000 {
                log.line(&"x".repeat(10_000));
            }
        }
        let text = std::fs::read_to_string(log_path(folder.path(), &id)).unwrap();
        assert!(text.len() as u64 <= MOST_BYTES + 100);
        assert!(text.ends_with("[the log is full; what came after is not kept]\n"));
        assert_eq!(text.matches("log is full").count(), 1);
    }
}
