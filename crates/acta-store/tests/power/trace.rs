//! The trace that `disk.c` writes: what a process did to the files of one folder, in order.

use std::path::Path;

/// One operation.
#[derive(Debug)]
pub(super) struct Record {
    /// The file, by its path below the folder; empty for the folder itself.
    pub(super) path: String,
    /// What was done.
    pub(super) act: Act,
}

/// What was done to a file.
#[derive(Debug)]
pub(super) enum Act {
    /// It was made, empty.
    Create,
    /// Bytes were written at an offset.
    Write(usize, Vec<u8>),
    /// It was cut, or stretched, to a length.
    Truncate(usize),
    /// A sync of it has returned.
    Sync,
    /// Its name was taken away.
    Remove,
    /// It was given another name, in place of the file that had it.
    Rename(String),
}

/// Reads a whole trace.
pub(super) fn read(path: &Path) -> Vec<Record> {
    let bytes = std::fs::read(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        records.push(take(&mut rest));
    }
    records
}

fn take(rest: &mut &[u8]) -> Record {
    let [kind, path_length, offset, data_length] = std::array::from_fn(|_| number(rest));
    let path = String::from_utf8(bytes(rest, path_length).to_vec()).expect("a path is text");
    let data = bytes(rest, data_length).to_vec();
    let act = match u8::try_from(kind) {
        Ok(b'c') => Act::Create,
        Ok(b'w') => Act::Write(offset, data),
        Ok(b't') => Act::Truncate(offset),
        Ok(b's') => Act::Sync,
        Ok(b'r') => Act::Remove,
        Ok(b'm') => Act::Rename(String::from_utf8(data).expect("a path is text")),
        _ => panic!("a record of the unknown kind {kind}"),
    };
    Record { path, act }
}

fn number(rest: &mut &[u8]) -> usize {
    let word = bytes(rest, 8).try_into().expect("eight bytes");
    usize::try_from(u64::from_ne_bytes(word)).expect("a number that fits")
}

fn bytes<'r>(rest: &mut &'r [u8], count: usize) -> &'r [u8] {
    let (taken, behind) = rest.split_at(count);
    *rest = behind;
    taken
}
