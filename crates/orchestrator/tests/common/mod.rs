//! A root of its own for each test, and the binary run in it.
#![allow(dead_code, reason = "compiled into several tests, none of which uses all")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use acta_core::store::{Enqueue, Found, JobFilter, NewJob};
use acta_core::{JobId, Json, Namespace, Store};
use acta_store::SqliteStore;
use acta_store::sqlite::Options;
use acta_testkit::block_on;

/// A folder with a ledger and job definitions.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A definition of a shell command, with more fields.
    pub(crate) fn shell(&self, script: &str, more: &str) -> PathBuf {
        let script = serde_json::to_string(script).unwrap();
        let text = format!(r#"{{"name": "work", "command": ["sh", "-c", {script}]{more}}}"#);
        self.write("job.json", &text)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orchestrator"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("ORCHESTRATOR_ROOT", self.path().join("root"))
            .env("USER", "operator")
            .env_remove("TS_QUEUE_PROVIDER")
            .env_remove("ACTA_FAILPOINT")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).output().unwrap())
    }

    /// Starts a command and goes on.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(self.path().join("root/acta.db"), Options::default()).unwrap())
    }

    /// All jobs, oldest first.
    pub(crate) fn jobs(&self) -> Vec<Found> {
        let filter = JobFilter { limit: 1_000, ..JobFilter::default() };
        let mut jobs = block_on(self.store().jobs(filter)).unwrap().jobs;
        jobs.reverse();
        jobs
    }

    /// Puts a job into a queue, past the command line.
    pub(crate) fn put(&self, queue: &str, payload: &str) -> JobId {
        let namespace = Namespace::job_queue(queue).unwrap();
        let jobs = vec![NewJob::new(Json::new(payload).unwrap())];
        block_on(self.store().enqueue(Enqueue { namespace, jobs })).unwrap().remove(0).id
    }
}

/// Waits for a command that was started.
pub(crate) fn wait(child: Child) -> Ended {
    ended(child.wait_with_output().unwrap())
}

fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Replaces what differs from run to run: ids, instants, lengths of time, the machine's name, folders.
pub(crate) fn steady(text: &str, desk: &Desk) -> String {
    let text = text.replace(desk.path().to_str().unwrap(), "[folder]");
    let mut words = Vec::new();
    for word in text.split_inclusive([' ', '\n', '"', ',', ':', '`', '}']) {
        let end = word.trim_end_matches([' ', '\n', '"', ',', ':', '`', '}']);
        words.push(word.replacen(end, &steady_word(end), usize::from(!end.is_empty())));
    }
    words.concat()
}

fn steady_word(word: &str) -> String {
    if let Some((queue, _)) = word.split_once("-item-") {
        return format!("{queue}-item-[id]");
    }
    if word.starts_with("job-") && word.matches('-').count() >= 3 {
        return "job-[id]".into();
    }
    word.to_owned()
}
