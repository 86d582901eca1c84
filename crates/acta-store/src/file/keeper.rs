//! Books kept as files of one root.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acta_core::book::{Common, Contents};
use acta_core::shelf::Keeper;
use acta_core::store::{Finding, Openness};
use acta_core::vitals::Vitals;
use acta_core::{Clock, Definition, Error, Family, Name, Namespace, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::aside::MOST_NUMBER;
use super::backup;
use super::disk::{self, Stamp, Tick, unavailable};
use super::document::{self, Read};
use super::text::{self, Flaw};
use super::vitals;
use crate::turn::Turn;

/// The families, and the folder in which each has its files.
const FOLDERS: [(Family, &str); 3] =
    [(Family::JobQueue, "queues"), (Family::TransactionQueue, "transactions"), (Family::Plain, "")];
/// What all files have in common. No namespace has such a name.
const COMMON: &str = ".ledger.json";

/// How often files of namespaces were read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Whole files read.
    pub reads: u64,
    /// Whole files written.
    pub writes: u64,
}

/// The files of a root.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    clock: Arc<dyn Clock>,
    turn: Option<Turn>,
    tick: Option<Tick>,
    common: Option<Kept>,
    seen: BTreeMap<Namespace, Seen>,
    /// The files of namespaces that somebody waits for, as they were at the last look.
    stamps: BTreeMap<Namespace, Option<Stamp>>,
    /// Workers and minutes, as they were read or written last, and the text that they were.
    vitals: BTreeMap<Namespace, (Vec<u8>, Vitals)>,
    pub(super) traffic: Traffic,
}

/// What was read or written last, and the text that it was.
#[derive(Debug)]
struct Kept {
    text: Option<Vec<u8>>,
    common: Common,
    /// Numbers were given that the file does not know of yet.
    is_ahead: bool,
}

/// A namespace as it was read or written last. A file that still says the same need not be understood anew; the contents
/// are lent out while a verb is at them.
#[derive(Debug)]
struct Seen {
    text: Vec<u8>,
    contents: Option<Contents>,
    /// It was completed while it was read: the next change writes that down.
    is_mended: bool,
}

/// What all files have in common, as a text.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CommonText {
    last_number: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<Name>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    definitions: Vec<Definition>,
    #[serde(skip_serializing_if = "is_open")]
    openness: Openness,
}

fn is_open(openness: &Openness) -> bool {
    *openness == Openness::Open
}

impl Files {
    pub(super) fn new(root: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            root,
            clock,
            turn: None,
            tick: None,
            common: None,
            seen: BTreeMap::new(),
            stamps: BTreeMap::new(),
            vitals: BTreeMap::new(),
            traffic: Traffic::default(),
        }
    }

    /// For how long this process has had the lock, if it has it.
    pub(super) fn locked_for(&self) -> Option<Duration> {
        self.tick.as_ref().map(Tick::held_for)
    }

    /// Takes the lock, if this process does not have it yet.
    pub(super) fn lock(&mut self) -> Result<()> {
        if self.tick.is_some() {
            return Ok(());
        }
        disk::make_folder(&self.root)?;
        let turn = match self.turn.take() {
            Some(turn) => turn,
            None => Turn::of(&Tick::path(&self.root))?,
        };
        let taken = turn.take(|| Tick::take(&self.root));
        self.turn = Some(turn);
        self.tick = Some(taken?);
        Ok(())
    }

    /// Gives the lock back.
    pub(super) fn unlock(&mut self) {
        self.tick = None;
        if self.common.as_ref().is_some_and(|kept| kept.is_ahead) {
            // Numbers that nobody has written down are nobody's: another process may give them, too.
            self.common = None;
            self.seen.clear();
        }
    }

    fn path(&self, namespace: &Namespace) -> PathBuf {
        let folder = FOLDERS.into_iter().find(|(family, _)| *family == namespace.family());
        self.root.join(folder.map_or("", |(_, folder)| folder)).join(format!("{}.json", namespace.name()))
    }

    /// No namespace has a file of such a name.
    fn vitals_path(&self, namespace: &Namespace) -> PathBuf {
        self.path(namespace).with_file_name(format!(".{}.vitals.json", namespace.name()))
    }

    /// Whether the namespace's file is another one than at the last look; at the first look it is not.
    pub(super) fn is_replaced(&mut self, namespace: &Namespace) -> bool {
        let stamp = disk::stamp(&self.path(namespace));
        let before = self.stamps.insert(namespace.clone(), stamp);
        before.is_some_and(|before| before != stamp)
    }

    /// What all files have in common, as it is now.
    fn kept(&mut self) -> Result<&mut Kept> {
        let path = self.root.join(COMMON);
        let text = disk::read(&path)?;
        if self.common.as_ref().is_none_or(|kept| kept.text != text) {
            let common = match &text {
                Some(bytes) => parse_common(&path, bytes)?,
                None => self.gathered()?,
            };
            self.common = Some(Kept { text, common, is_ahead: false });
        }
        self.common.as_mut().ok_or_else(|| unavailable(&self.root, "has nothing in common"))
    }

    /// What the namespaces' files have in common, where the file that says it is not there: as high a number as any.
    fn gathered(&mut self) -> Result<Common> {
        let mut common = Common::default();
        for namespace in self.namespaces()? {
            let path = self.path(&namespace);
            let Some(text) = disk::read(&path)? else { continue };
            // A file that can't be read stops its own queue only.
            if let Ok(Read { contents, .. }) = parse(&namespace, &path, &text, &mut common, self.clock.now()) {
                for name in contents.jobs.values().filter_map(|job| job.identity.name.as_ref()) {
                    common.add_name(name);
                }
            }
        }
        Ok(common)
    }

    /// What has to be completed in a file.
    fn look_at(&mut self, namespace: &Namespace) -> Result<Vec<String>> {
        let path = self.path(namespace);
        let Some(text) = disk::read(&path)? else { return Ok(Vec::new()) };
        let mut common = self.kept()?.common.clone();
        Ok(parse(namespace, &path, &text, &mut common, self.clock.now())?.mended)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        match &self.tick {
            Some(tick) => disk::replace(path, bytes, tick),
            None => Err(unavailable(path, "is not written without the lock")),
        }
    }
}

/// How many completions of one file are told.
const MOST_MENDED: usize = 20;

fn parse(namespace: &Namespace, path: &Path, text: &[u8], common: &mut Common, now: Timestamp) -> Result<Read> {
    let read = utf8(text).and_then(|text| document::read(namespace, common, now, text));
    read.map_err(|flaw| unreadable(path, flaw))
}

fn parse_common(path: &Path, bytes: &[u8]) -> Result<Common> {
    let parse = |text| text::read::<CommonText>(text, text);
    let told = utf8(bytes).and_then(parse).map_err(|flaw| unreadable(path, flaw))?;
    if told.last_number > MOST_NUMBER {
        let why = format!("lastNumber is more than {MOST_NUMBER}");
        return Err(unreadable(path, Flaw { line: 1, column: 1, why }));
    }
    let mut common = Common::default();
    common.last_number = told.last_number;
    common.openness = told.openness;
    for name in &told.names {
        common.add_name(name);
    }
    for definition in told.definitions {
        common
            .define(definition)
            .map_err(|fault| unreadable(path, Flaw { line: 1, column: 1, why: fault.to_string() }))?;
    }
    Ok(common)
}

/// A file that can't be read, as a finding.
fn unreadable_finding(fault: Error, fix: &str) -> Finding {
    match fault {
        Error::Unreadable { place, why } => Finding::new(place, why, fix),
        other => Finding::new("a file", other.to_string(), fix),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Flaw> {
    // Some editors put a mark in front that says that it is UTF-8.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|fault| {
        let read = String::from_utf8_lossy(&bytes[..fault.valid_up_to()]);
        Flaw::behind(&read, "this is not UTF-8")
    })
}

/// A file that is not what it should be; it is never written over.
fn unreadable(path: &Path, Flaw { line, column, why }: Flaw) -> Error {
    Error::Unreadable { place: format!("{}: line {line}, column {column}", path.display()), why }
}

impl Keeper for Files {
    fn namespaces(&mut self) -> Result<Vec<Namespace>> {
        let mut namespaces = Vec::new();
        for (family, folder) in FOLDERS {
            let folder = self.root.join(folder);
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
                Err(fault) => return Err(unavailable(&folder, fault)),
            };
            for entry in entries {
                let name = entry.map_err(|fault| unavailable(&folder, fault))?.file_name();
                let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
                let name = stem.and_then(|stem| Name::new("queue", stem).ok());
                namespaces.extend(name.map(|name| Namespace::new(family, name)));
            }
        }
        namespaces.sort();
        Ok(namespaces)
    }

    fn load(&mut self, namespace: &Namespace) -> Result<Option<Contents>> {
        let before = self.seen.remove(namespace);
        let path = self.path(namespace);
        let Some(text) = disk::read(&path)? else { return Ok(None) };
        self.traffic.reads += 1;
        if let Some(Seen { text: same, contents: Some(contents), is_mended }) = before
            && same == text
        {
            self.seen.insert(namespace.clone(), Seen { text, contents: None, is_mended });
            return Ok(Some(contents));
        }
        let mut common = self.kept()?.common.clone();
        let Read { contents, mended } = parse(namespace, &path, &text, &mut common, self.clock.now())?;
        let kept = self.kept()?;
        if common != kept.common {
            kept.common = common;
            kept.is_ahead = true;
        }
        self.seen.insert(namespace.clone(), Seen { text, contents: None, is_mended: !mended.is_empty() });
        Ok(Some(contents))
    }

    fn wants_saving(&self, namespace: &Namespace) -> bool {
        self.seen.get(namespace).is_some_and(|seen| seen.is_mended)
    }

    fn put_back(&mut self, contents: Contents) {
        if let Some(seen) = self.seen.get_mut(&contents.queue.namespace) {
            seen.contents = Some(contents);
        }
    }

    fn save(&mut self, contents: Contents) -> Result<()> {
        let kept = self.kept()?;
        if kept.is_ahead {
            let common = kept.common.clone();
            self.save_common(&common)?;
        }
        let namespace = contents.queue.namespace.clone();
        let path = self.path(&namespace);
        // Whoever edits a file by hand takes no lock.
        let before = self.seen.remove(&namespace).map(|seen| seen.text);
        if disk::read(&path)? != before {
            return Err(unavailable(&path, "was changed by somebody else just now"));
        }
        let text = document::write(&contents).map_err(|fault| unavailable(&path, fault))?;
        let replaced = disk::stamp(&path);
        self.write(&path, &text)?;
        if let Some(stamp) = self.stamps.get_mut(&namespace).filter(|stamp| **stamp == replaced) {
            // Our own changes are told by the verbs that make them.
            *stamp = disk::stamp(&path);
        }
        self.traffic.writes += 1;
        self.seen.insert(namespace, Seen { text, contents: Some(contents), is_mended: false });
        Ok(())
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn backup(&mut self, path: &Path) -> Result<()> {
        let mut files = vec![self.root.join(COMMON)];
        files.extend(self.namespaces()?.iter().map(|namespace| self.path(namespace)));
        backup::copy(&self.root, &files, path)
    }

    fn examine(&mut self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if let Err(fault) = self.kept() {
            findings.push(unreadable_finding(fault, "mend it by hand at that place, or restore it from a backup"));
        }
        for namespace in self.namespaces()? {
            match self.look_at(&namespace) {
                Err(fault) => {
                    let fix = "mend it by hand at that place, or restore it from a backup; nothing is written over it";
                    findings.push(unreadable_finding(fault, fix));
                }
                Ok(mended) => {
                    let place = self.path(&namespace).display().to_string();
                    let fix =
                        "after a change by hand that is as it should be: the next change of the queue writes it down";
                    let findings_of = mended.into_iter().take(MOST_MENDED).map(|what| Finding::new(&place, what, fix));
                    findings.extend(findings_of);
                }
            }
            findings.extend(crate::filesystem::unwritable(&self.path(&namespace)));
        }
        findings.extend(crate::filesystem::unwritable(&self.root));
        Ok(findings)
    }

    fn vitals(&mut self, namespace: &Namespace) -> Result<Vitals> {
        let Some(text) = disk::read(&self.vitals_path(namespace))? else { return Ok(Vitals::default()) };
        if let Some((same, vitals)) = self.vitals.get(namespace)
            && *same == text
        {
            return Ok(vitals.clone());
        }
        let vitals = vitals::read(&text);
        self.vitals.insert(namespace.clone(), (text, vitals.clone()));
        Ok(vitals)
    }

    fn save_vitals(&mut self, namespace: &Namespace, vitals: Vitals) -> Result<()> {
        let path = self.vitals_path(namespace);
        let text = vitals::write(&vitals).map_err(|fault| unavailable(&path, fault))?;
        match &self.tick {
            Some(tick) => disk::replace_lightly(&path, &text, tick)?,
            None => return Err(unavailable(&path, "is not written without the lock")),
        }
        self.vitals.insert(namespace.clone(), (text, vitals));
        Ok(())
    }

    fn common(&mut self) -> Result<Common> {
        Ok(self.kept()?.common.clone())
    }

    fn save_common(&mut self, common: &Common) -> Result<()> {
        let text = CommonText {
            last_number: common.last_number,
            names: common.names().cloned().collect(),
            definitions: common.definitions().cloned().collect(),
            openness: common.openness.clone(),
        };
        let path = self.root.join(COMMON);
        let mut bytes = serde_json::to_vec_pretty(&text).map_err(|fault| unavailable(&path, fault))?;
        bytes.push(b'\n');
        self.common = None;
        self.write(&path, &bytes)?;
        self.common = Some(Kept { text: Some(bytes), common: common.clone(), is_ahead: false });
        Ok(())
    }
}
