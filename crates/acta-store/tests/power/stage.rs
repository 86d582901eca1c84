//! Where a child works: its disk, the folder of its ledger, and what it says.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use acta_core::Result;
use acta_core::store::{Enqueue, Found};
use acta_testkit::desk::{in_lane, namespace};
use acta_testkit::{block_on, invariants};
use tempfile::TempDir;

use crate::child::{self, Kind};
use crate::disk::Files;

/// A folder for one child.
pub(super) struct Stage {
    folder: TempDir,
}

/// A child at work.
pub(super) struct Running<'s> {
    stage: &'s Stage,
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Stage {
    /// An empty folder and a compiled disk.
    pub(super) fn new() -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(stage.ledgers()).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/power/disk.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(stage.path("libdisk.so"));
        let built = compiler.args([source, "-ldl", "-lpthread"]).status().expect("a C compiler named cc");
        assert!(built.success(), "{source} does not compile");
        stage
    }

    /// A file beside the ledger's folder, named as SQLite names files: without symbolic links.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// The folder whose files the disk holds.
    pub(super) fn ledgers(&self) -> PathBuf {
        self.path("ledgers")
    }

    /// Leaves the folder where it is.
    pub(super) fn keep(self) {
        let _ = self.folder.keep();
    }

    /// Starts this test's own program as a child on that disk.
    pub(super) fn start(&self, role: &str, environment: &[(&str, PathBuf)]) -> Running<'_> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["child_workload", "--exact", "--nocapture"]).env("ACTA_POWER_CHILD", role);
        command.env("LD_PRELOAD", self.path("libdisk.so")).env("DISK_FOLDER", self.ledgers());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let faults = File::create(self.path("faults")).unwrap();
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(faults).spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Running { stage: self, process, said }
    }
}

impl Running<'_> {
    /// Waits until the child says `line`.
    pub(super) fn wait_for(&mut self, line: &str) {
        let mut said = String::new();
        while !said.contains(line) {
            said.clear();
            let length = self.said.read_line(&mut said).unwrap();
            assert!(length > 0, "the child ended early: {}", self.faults());
        }
    }

    /// Tells the child to go on.
    pub(super) fn go_on(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Waits for the child's end; it must be a good one, without a panic on any thread.
    pub(super) fn finish(mut self) {
        self.said.read_to_end(&mut Vec::new()).unwrap();
        let status = self.process.wait().unwrap();
        let faults = self.faults();
        assert!(status.success() && !faults.contains("panicked"), "the child ended with {status}: {faults}");
    }

    fn faults(&self) -> String {
        std::fs::read_to_string(self.stage.path("faults")).unwrap()
    }
}

/// The files of a folder that are to be there when a ledger is opened again; SQLite makes its shared memory anew.
pub(super) fn files_in(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            files.extend(
                files_in(&entry.path()).into_iter().map(|(below, content)| (format!("{name}/{below}"), content)),
            );
        } else if !name.ends_with("-shm") && !name.ends_with("-turn") {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Opens the ledger that is in these files, as the next process would: its jobs, and what is wrong with it.
pub(super) fn open_again(kind: Kind, files: &Files) -> Result<(Vec<Found>, Vec<String>)> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let store = &*child::open(kind, folder.path())?;
    let jobs = block_on(invariants::all_jobs(store))?;
    // It is not only to be looked at: work goes on in it.
    let enqueue = Enqueue { namespace: namespace("queues/q"), jobs: vec![in_lane("lane-1")] };
    block_on(store.enqueue(enqueue))?;
    Ok((jobs, block_on(invariants::violations(store))?))
}
