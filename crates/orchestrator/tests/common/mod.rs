//! A root of its own for each test, and the binary run in it.
#![allow(dead_code, reason = "compiled into several tests, none of which uses all")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use acta_core::store::{Enqueue, Found, JobFilter, NewJob};
use acta_core::{JobId, Json, Namespace, Store, SystemClock};
use acta_store::Address;
use acta_testkit::block_on;
use acta_testkit::postgres::{Database, Server};

/// A folder with a ledger and job definitions.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
    provider: &'static str,
    database: Option<Database>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    /// On SQLite, or on what `ACTA_TEST_PROVIDER` says.
    pub(crate) fn new() -> Self {
        Self::on(match std::env::var("ACTA_TEST_PROVIDER").as_deref() {
            Ok("file") => "file",
            Ok("postgres") => "postgres",
            _ => "sqlite",
        })
    }

    /// The same, with the ledger on a certain substrate.
    pub(crate) fn on(provider: &'static str) -> Self {
        let database = (provider == "postgres").then(|| Database::new(Server::shared_url(), None));
        Self { folder: tempfile::tempdir().unwrap(), provider, database }
    }

    /// The same in a database of this PostgreSQL server.
    pub(crate) fn on_server(url: &str) -> Self {
        let database = Some(Database::new(url, None));
        Self { folder: tempfile::tempdir().unwrap(), provider: "postgres", database }
    }

    pub(crate) fn provider(&self) -> &str {
        self.provider
    }

    /// The database of a ledger in PostgreSQL.
    pub(crate) fn database_url(&self) -> Option<String> {
        self.database.as_ref().map(Database::url)
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
            .env("TS_QUEUE_PROVIDER", self.provider)
            .env("DATABASE_URL", self.database.as_ref().map(Database::url).unwrap_or_default())
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
        let root = self.path().join("root");
        let address = match (&self.database, self.provider) {
            (Some(database), _) => database.url().parse().unwrap(),
            (None, "file") => Address::File(root),
            (None, _) => Address::Sqlite(root.join("acta.db")),
        };
        block_on(address.open(Arc::new(SystemClock))).unwrap()
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
    let text = text.replace("sqlite:[folder]/root/acta.db", "[ledger]").replace("file:[folder]/root", "[ledger]");
    let text = match &desk.database {
        Some(database) => text.replace(&database.url().replace("postgres@", ""), "[ledger]"),
        None => text,
    };
    let text: String = without_instants(&text).split_inclusive('\n').map(without_minutes).collect();
    let mut words = Vec::new();
    for word in text.split_inclusive([' ', '\n', '"', ',', ':', '`', '}']) {
        let end = word.trim_end_matches([' ', '\n', '"', ',', ':', '`', '}']);
        words.push(word.replacen(end, &steady_word(end), usize::from(!end.is_empty())));
    }
    words.concat()
}

/// A test may begin in one minute and end in the next: what happened in which is left out.
fn without_minutes(line: &str) -> String {
    match line.split_once(" minute ") {
        Some((which @ ("this" | "last"), _)) => format!("{which} minute  [counts]\n"),
        _ => line.to_owned(),
    }
}

/// Every `2026-10-03T09:12:00.000Z` as a word.
fn without_instants(text: &str) -> String {
    const SHAPE: &str = "0000-00-00T00:00:00.000Z";
    let is_one = |part: &str| {
        let fits = |(real, shape): (u8, u8)| if shape == b'0' { real.is_ascii_digit() } else { real == shape };
        part.bytes().zip(SHAPE.bytes()).all(fits)
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if rest.get(..SHAPE.len()).is_some_and(is_one) {
            out.push_str("[instant]");
            rest = &rest[SHAPE.len()..];
        } else {
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
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
