//! Processes of the test itself: the binary runs again, as a child with a role.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use acta_core::store::{Claim, ClaimOutcome, Claimant, Enqueue, NewJob, Outcome, Settlement, Wave};
use acta_core::{Clock, Job, JobId, Json, Label, Namespace, Result, State, Store, SystemClock};
use acta_store::{FileStore, SqliteStore, file, sqlite};

/// The environment's name for a child's role.
const ROLE: &str = "ACTA_TEST_ROLE";
/// The environment's name for a child's ledger.
const LEDGER: &str = "ACTA_TEST_LEDGER";

/// The queue that children work on.
pub(crate) fn queue() -> Namespace {
    Namespace::transaction_queue("q").unwrap()
}

pub(crate) fn label(text: &str) -> Label {
    Label::new("label", text).unwrap()
}

/// Opens a ledger with a real clock, durable at every call: a file is one of SQLite, a folder one of files.
pub(crate) fn open(path: &Path) -> Arc<dyn Store> {
    open_at(path, Arc::new(SystemClock))
}

/// The same by another clock.
pub(crate) fn open_at(path: &Path, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
    if path.extension().is_some_and(|ending| ending == "db") {
        Arc::new(SqliteStore::open(path, sqlite::Options { clock, ..sqlite::Options::default() }).unwrap())
    } else {
        Arc::new(FileStore::open(path, file::Options { clock, random: None }).unwrap())
    }
}

/// The role and ledger of this process, if it is a child.
pub(crate) fn role() -> Option<(String, String)> {
    Some((std::env::var(ROLE).ok()?, std::env::var(LEDGER).ok()?))
}

/// Starts a child: the test named `test` of this binary, in a role, on a ledger.
pub(crate) fn spawn(test: &str, role: &str, ledger: &Path, failpoint: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role).env(LEDGER, ledger);
    if let Some(failpoint) = failpoint {
        command.env("ACTA_FAILPOINT", failpoint);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Tells the parent that something has been acknowledged.
pub(crate) fn acknowledge(what: &str) {
    let mut out = std::io::stdout().lock();
    // The test harness may have begun a line of its own.
    writeln!(out, "\nack {what}").unwrap();
    out.flush().unwrap();
}

/// What a child acknowledges, line by line, until it ends.
pub(crate) fn acknowledgements(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(std::io::Result::ok);
    lines.filter_map(|line| line.strip_prefix("ack ").map(ToOwned::to_owned))
}

/// Adds jobs.
pub(crate) async fn add(store: &dyn Store, jobs: Vec<NewJob>) -> Result<Vec<JobId>> {
    let added = store.enqueue(Enqueue { namespace: queue(), jobs }).await?;
    Ok(added.into_iter().map(|added| added.id).collect())
}

/// A job with a number in its payload.
pub(crate) fn numbered(number: usize) -> NewJob {
    NewJob::new(Json::new(number.to_string()).unwrap())
}

/// Claims up to `count`.
pub(crate) async fn claim(store: &dyn Store, robot: &str, count: usize) -> Result<Vec<Job>> {
    let claim = Claim { count, ..Claim::one(queue(), label(robot)) };
    match store.claim(claim).await?.outcome {
        ClaimOutcome::Claimed(jobs) => Ok(jobs),
        ClaimOutcome::Nothing(_) | ClaimOutcome::Mismatch { .. } => Ok(Vec::new()),
    }
}

/// Settles one claim.
pub(crate) async fn settle(store: &dyn Store, job: &Job, outcome: Outcome) -> Result<State> {
    let claimant = Claimant::fence(job.standing.fence);
    let settlements = vec![Settlement { id: job.identity.id.clone(), claimant, outcome }];
    let answer = store.settle(Wave { namespace: queue(), settlements }).await?.remove(0)?;
    Ok(answer.state)
}
