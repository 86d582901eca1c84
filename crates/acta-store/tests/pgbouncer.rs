//! The ledger through `PgBouncer` in transaction mode: whatever a call leaves in its session would be another client's.

mod common;

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use acta_core::store::{Action, Claim, ClaimOutcome, Claimant, Heartbeats, Operation, Outcome, Settlement, Wave};
use acta_core::{Job, State, Store};
use acta_store::{PostgresStore, postgres};
use acta_testkit::postgres::{Server, free_port, not_root};
use common::child::{add, label, numbered, queue};
use common::session::{Session, ledger};

/// How many tasks share the connections, and how many jobs each brings.
const TASKS: usize = 16;
const EACH: usize = 20;

struct Bouncer {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Bouncer {
    /// Starts one in front of the tests' server, if it is installed.
    fn start() -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let server = Server::shared_url().rsplit_once('/').unwrap().0.rsplit_once(':').unwrap().1;
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={server} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
        );
        let path = folder.path().join("pgbouncer.ini");
        fs::write(&path, settings).unwrap();
        Command::new("chmod").args(["-R", "a+rX"]).arg(folder.path()).status().unwrap();
        let mut command = not_root(&program);
        command.arg("--quiet").arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let bouncer = Self { process: command.spawn().unwrap(), port, _folder: folder };
        for _ in 0..100_000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(bouncer);
            }
            std::thread::yield_now();
        }
        panic!("PgBouncer does not start");
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("ACTA_TEST_PGBOUNCER").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from("/usr/sbin/pgbouncer"))).filter(|path| Path::exists(path))
}

/// Enqueues, beats, exchanges and is told by operators until its share is done; how many jobs it has settled.
async fn work(store: Arc<PostgresStore>, task: usize) -> usize {
    add(&*store, (0..EACH).map(|index| numbered(task * EACH + index)).collect()).await.unwrap();
    let claim = Claim { count: 3, ..Claim::one(queue(), label(&format!("w{task}"))) };
    let mut held: Vec<Job> = Vec::new();
    let mut done = 0;
    loop {
        let beats = held.iter().map(|job| (job.identity.id.clone(), Claimant::fence(job.standing.fence))).collect();
        for beat in store.heartbeat(Heartbeats { namespace: queue(), beats, lease: None, worker: None }).await.unwrap()
        {
            assert!(!beat.unwrap().cancel_requested);
        }
        if let Some(job) = held.first() {
            for action in [Action::Pause, Action::Resume] {
                let ids = vec![job.identity.id.clone()];
                let act = Operation { namespace: queue(), ids, action, actor: None, reason: None };
                assert!(store.operate(act).await.unwrap().remove(0).unwrap().changed);
            }
        }
        let settlements = held
            .iter()
            .map(|job| Settlement {
                id: job.identity.id.clone(),
                claimant: Claimant::fence(job.standing.fence),
                outcome: Outcome::Succeeded(None),
            })
            .collect();
        let (answers, claimed) = store.exchange(Wave { namespace: queue(), settlements }, claim.clone()).await.unwrap();
        done += answers.into_iter().map(|answer| assert_eq!(answer.unwrap().state, State::Succeeded)).count();
        match claimed.outcome {
            ClaimOutcome::Claimed(jobs) => held = jobs,
            _ => return done,
        }
    }
}

#[test]
fn sixteen_tasks_on_four_connections_over_two_of_the_server_s() {
    let Some(bouncer) = Bouncer::start() else {
        eprintln!("skipped: PgBouncer is not installed; ./test installs it where it may");
        return;
    };
    let database = ledger();
    let url = database.url();
    let name = url.rsplit_once('/').unwrap().1;
    let pooled = format!("postgres://postgres@127.0.0.1:{}/{name}", bouncer.port);
    let options = postgres::Options { connections: 4, ..postgres::Options::default() };
    let store = Arc::new(PostgresStore::new(&pooled.parse().unwrap(), options).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(work(Arc::clone(&store), task))).collect();
        let mut done = 0;
        for task in tasks {
            done += task.await.unwrap();
        }
        let session = Session::open(&url).await;
        let left = session.lines("SELECT state, count(*) FROM acta.standing GROUP BY 1").await;
        assert_eq!(left, [format!("6|{}", TASKS * EACH)]);
        // And the functions for everybody, each in whatever session it gets.
        let shop = Session::open(&pooled).await;
        let id = shop.one("SELECT id FROM acta.enqueue('shop', '1')").await;
        assert_eq!(shop.one("SELECT fence FROM acta.claim('shop', 'w')").await, "1");
        assert_eq!(shop.one(&format!("SELECT state FROM acta.complete('shop', '{id}', 1)")).await, "succeeded");
        assert_eq!(store.job(acta_core::JobId::new(&id).unwrap()).await.unwrap().job.standing.state, State::Succeeded);
        done
    });
    assert_eq!(done, TASKS * EACH, "each was done once");
    drop(store);
    drop(runtime);
    drop(bouncer);
}
