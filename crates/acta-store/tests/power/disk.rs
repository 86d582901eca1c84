//! What a disk holds after the power has failed.
//!
//! What a sync has confirmed is there. Of what was written since, the disk may have any part: each write whole, torn
//! between two sectors, or not at all, in any order. A name that was made or taken away is certain once its folder was
//! synced; a new file's own sync confirms its name too, as ext4 does it.

use std::collections::{BTreeMap, BTreeSet};

use acta_core::Seeded;
use acta_core::random::Random;

use crate::trace::{Act, Record};

/// What a disk writes as a whole.
const SECTOR: usize = 512;

/// The files of a folder while a trace is played.
#[derive(Default)]
pub(super) struct Disk<'t> {
    bodies: Vec<Body<'t>>,
    /// The body behind each name, as the process sees it.
    seen: BTreeMap<&'t str, usize>,
    /// The body behind each name, as the folder on the disk has it for certain.
    certain: BTreeMap<&'t str, usize>,
}

/// The content of a file: what is certain, and what came after it.
#[derive(Default)]
struct Body<'t> {
    certain: Vec<u8>,
    since: Vec<Change<'t>>,
}

#[derive(Clone, Copy)]
enum Change<'t> {
    Write(usize, &'t [u8]),
    Truncate(usize),
}

/// The folder that a file is in; empty for the folder of the disk itself.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The files of a folder, by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// A random number below `count`.
pub(super) fn below(random: &mut Seeded, count: usize) -> usize {
    let drawn = random.next_u64() % u64::try_from(count.max(1)).expect("a count");
    usize::try_from(drawn).expect("less than a count")
}

impl<'t> Disk<'t> {
    /// Does what a record says.
    pub(super) fn play(&mut self, Record { path, act }: &'t Record) {
        let path = path.as_str();
        match act {
            Act::Create => {
                self.bodies.push(Body::default());
                self.seen.insert(path, self.bodies.len() - 1);
            }
            Act::Write(offset, data) => self.body(path).since.push(Change::Write(*offset, data)),
            Act::Truncate(length) => self.body(path).since.push(Change::Truncate(*length)),
            // A folder: no file has its name.
            Act::Sync if !self.seen.contains_key(path) => {
                self.certain.retain(|name, _| folder_of(name) != path);
                self.certain.extend(self.seen.iter().filter(|(name, _)| folder_of(name) == path));
            }
            Act::Sync => {
                let body = self.body(path);
                for change in std::mem::take(&mut body.since) {
                    change.apply(&mut body.certain);
                }
                self.certain.insert(path, self.seen[path]);
            }
            Act::Remove => {
                self.seen.remove(path);
            }
            Act::Rename(to) => {
                let body = self.seen.remove(path).unwrap_or_else(|| panic!("{path:?} was never made"));
                self.seen.insert(to, body);
            }
        }
    }

    fn body(&mut self, path: &str) -> &mut Body<'t> {
        let index = *self.seen.get(path).unwrap_or_else(|| panic!("{path:?} was never made"));
        &mut self.bodies[index]
    }

    /// The files as a process sees them now.
    pub(super) fn as_seen(&self) -> Files {
        let content = |index: &usize| self.bodies[*index].content(|change| Some(*change));
        self.seen.iter().map(|(name, index)| ((*name).to_owned(), content(index))).collect()
    }

    /// The files after a power failure now.
    ///
    /// Luck is drawn first, then the fate of each write: so that there are failures after which everything is there,
    /// some after which nothing uncertain is, and all between.
    pub(super) fn after_power_failure(&self, random: &mut Seeded) -> Files {
        let luck = below(random, 5);
        let mut files = Files::new();
        let names: BTreeSet<&str> = self.seen.keys().chain(self.certain.keys()).copied().collect();
        for name in names {
            let body = if below(random, 4) < luck { self.seen.get(name) } else { self.certain.get(name) };
            if let Some(index) = body {
                files.insert(name.to_owned(), self.bodies[*index].content(|change| change.survivor(luck, random)));
            }
        }
        files
    }
}

impl<'t> Body<'t> {
    fn content(&self, mut fate: impl FnMut(&Change<'t>) -> Option<Change<'t>>) -> Vec<u8> {
        let mut content = self.certain.clone();
        for change in self.since.iter().filter_map(&mut fate) {
            change.apply(&mut content);
        }
        content
    }
}

impl Change<'_> {
    fn apply(self, content: &mut Vec<u8>) {
        match self {
            Self::Write(offset, data) => {
                let end = offset + data.len();
                content.resize(content.len().max(end), 0);
                content[offset..end].copy_from_slice(data);
            }
            Self::Truncate(length) => content.resize(length, 0),
        }
    }

    /// What is left of an uncertain change; with a luck of 0 nothing, with one of 4 everything.
    fn survivor(&self, luck: usize, random: &mut Seeded) -> Option<Self> {
        if below(random, 4) < luck {
            return Some(*self);
        }
        match *self {
            Self::Write(offset, data) if luck > 0 && below(random, 2) == 0 => torn(offset, data, random),
            _ => None,
        }
    }
}

/// The part of a write before or behind a border between two sectors; nothing if it lies within one.
fn torn<'t>(offset: usize, data: &'t [u8], random: &mut Seeded) -> Option<Change<'t>> {
    let first = (offset / SECTOR + 1) * SECTOR;
    let end = offset + data.len();
    if first >= end {
        return None;
    }
    let borders = (end - 1 - first) / SECTOR + 1;
    let (before, behind) = data.split_at(first + below(random, borders) * SECTOR - offset);
    let is_start = below(random, 2) == 0;
    Some(if is_start { Change::Write(offset, before) } else { Change::Write(offset + before.len(), behind) })
}
