//! What handlers and the test write down, line by line, in one file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

/// One line of the record. Lines are appended by one write each, so their order is that of what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A handler began: the process, the job's number, its lane, its place in the lane, attempt and fence.
    Begun { pid: u32, job: u32, lane: u32, nth: u32, attempt: u32, fence: u64 },
    /// It returned.
    Ended { pid: u32, job: u32, fence: u64 },
    /// The process is no more: it was killed, or has ended.
    Gone { pid: u32 },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun { pid, job, lane, nth, attempt, fence } => {
                write!(f, "begun {pid} {job} {lane} {nth} {attempt} {fence}")
            }
            Self::Ended { pid, job, fence } => write!(f, "ended {pid} {job} {fence}"),
            Self::Gone { pid } => write!(f, "gone {pid}"),
        }
    }
}

impl FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unfit = || format!("{text:?} is no line of the record");
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).ok_or_else(unfit);
        let fence = |at: usize| words.get(at).and_then(|word| word.parse().ok()).ok_or_else(unfit);
        match words.first() {
            Some(&"begun") => Ok(Self::Begun {
                pid: number(1)?,
                job: number(2)?,
                lane: number(3)?,
                nth: number(4)?,
                attempt: number(5)?,
                fence: fence(6)?,
            }),
            Some(&"ended") => Ok(Self::Ended { pid: number(1)?, job: number(2)?, fence: fence(3)? }),
            Some(&"gone") => Ok(Self::Gone { pid: number(1)? }),
            _ => Err(unfit()),
        }
    }
}

/// The record, to be appended to.
#[derive(Debug)]
pub(crate) struct Record(File);

impl Record {
    pub(crate) fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    pub(crate) fn add(&self, line: &Line) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// All that was written down.
pub(crate) fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}
