//! What a worker process takes: connections of the server, and memory.

#![expect(clippy::disallowed_methods, reason = "what a process takes is looked at now and then")]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use acta::{Context, Job, JobError, Ledger, Worker};
use acta_core::store::{JobFilter, QueueFilter};
use acta_testkit::postgres::{Database, Server, sql};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

const LEDGER: &str = "ACTA_TEST_FOOTPRINT_LEDGER";

/// A job that is kept for a moment after its end, so that pruning goes on all the time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Parcel {
    number: usize,
    filling: String,
}

impl Job for Parcel {
    const NAME: &'static str = "parcel";
    const QUEUE: &'static str = "parcels";
    const LEASE: Option<Duration> = Some(Duration::from_secs(2));
    const RETENTION: Option<Duration> = Some(Duration::from_secs(5));

    fn lane(&self) -> Option<String> {
        self.number.is_multiple_of(4).then(|| format!("lane {}", self.number % 100))
    }
}

impl Parcel {
    fn new(number: usize) -> Self {
        Self { number, filling: "x".repeat(200) }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn two_hundred_running_jobs_need_no_more_than_four_connections() {
    const JOBS: usize = 200;
    let database = Database::new(Server::shared_url(), None);
    let url = database.url();
    let name = url.rsplit('/').next().unwrap().to_owned();
    let connections = move || -> usize {
        let count = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND backend_type = 'client backend'"
        );
        sql(Server::shared_url(), &count).unwrap()[0].parse().unwrap()
    };
    runtime().block_on(async {
        let ledger = Ledger::open(&url).await.unwrap();
        let running = Arc::new(AtomicUsize::new(0));
        let (end, ended) = watch::channel(false);
        let counted = Arc::clone(&running);
        let worker =
            Worker::new(&ledger, Parcel::QUEUE).concurrency(JOBS).handle(move |_: Parcel, context: Context| {
                let (counted, mut ended) = (Arc::clone(&counted), ended.clone());
                async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    // Each of them speaks with the ledger while it runs, all at once.
                    context.step("begun", async || Ok(1)).await?;
                    ended.wait_for(|ended| *ended).await?;
                    Ok(())
                }
            });
        let (stop, stopped) = oneshot::channel::<()>();
        let working = tokio::spawn(worker.run(async { drop(stopped.await) }));
        // None in a lane: all of them run at once.
        let parcels: Vec<Parcel> = (0..JOBS).map(|number| Parcel::new(number * 4 + 1)).collect();
        let added = ledger.enqueue_many(&parcels).await.unwrap();
        let begun = Instant::now();
        let mut most = 0;
        // Beyond two leases: they were extended meanwhile, or somebody would have run again.
        while running.load(Ordering::SeqCst) < JOBS || begun.elapsed() < Duration::from_secs(5) {
            most = most.max(connections());
            assert!(begun.elapsed() < Duration::from_mins(2), "they do not all run");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(running.load(Ordering::SeqCst), JOBS, "each runs once");
        assert!((1..=4).contains(&most), "{most} connections");
        end.send(true).unwrap();
        drop(stop);
        working.await.unwrap().unwrap();
        for added in added {
            assert_eq!(ledger.job(&added.id).await.unwrap().job.standing.state, acta::State::Succeeded);
        }
    });
}

/// The role of a process under load; an ordinary run of this test does nothing.
#[test]
fn loaded() {
    let Ok(url) = std::env::var(LEDGER) else { return };
    runtime().block_on(async {
        let ledger = Ledger::open(&url).await.unwrap();
        let worker =
            Worker::new(&ledger, Parcel::QUEUE).concurrency(50).handle(|parcel: Parcel, context: Context| async move {
                if parcel.number.is_multiple_of(10) {
                    context.step("weighed", async || Ok(parcel.number)).await?;
                }
                if parcel.number.is_multiple_of(100) && context.attempt() == 1 {
                    return Err(JobError::system("dropped"));
                }
                Ok(parcel.filling)
            });
        let working = tokio::spawn(worker.run(acta::shutdown_signal()));
        // 500 a second, half of them singly.
        let mut beats = tokio::time::interval(Duration::from_millis(100));
        for round in 0_usize.. {
            beats.tick().await;
            if working.is_finished() {
                break;
            }
            let parcels: Vec<Parcel> = (0..25).map(|number| Parcel::new(round * 50 + number)).collect();
            ledger.enqueue_many(&parcels).await.unwrap();
            for number in 25..50 {
                ledger.enqueue(&Parcel::new(round * 50 + number)).await.unwrap();
            }
        }
        working.await.unwrap().unwrap();
    });
}

/// Pages of memory that a process has, times four: KiB.
fn resident(child: &Child) -> usize {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
}

fn stays_flat(url: &str) {
    let is_long = std::env::var_os("ACTA_LONG").is_some();
    let (warm_up, time) = if is_long {
        (Duration::from_mins(5), Duration::from_hours(1))
    } else {
        (Duration::from_secs(10), Duration::from_secs(20))
    };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["loaded", "--exact", "--nocapture", "--test-threads=1"])
        .env(LEDGER, url)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(warm_up);
    let begun = Instant::now();
    let (mut early, mut late) = (0, 0);
    while begun.elapsed() < time {
        assert!(child.try_wait().unwrap().is_none(), "it goes on");
        let part = if begun.elapsed() < time / 3 { &mut early } else { &mut late };
        *part = (*part).max(resident(&child));
        std::thread::sleep(Duration::from_millis(250));
    }
    let (newest, waiting) = progress(url);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    println!(
        "{newest} jobs, {waiting} of them waiting; at most {early} KiB in the first third of {time:?}, {late} KiB in the rest"
    );
    assert!(late <= early + early / 20 + 2_048, "{early} KiB, then {late} KiB");
    assert!(newest >= (warm_up + time).as_secs() * 100, "{newest} jobs: it was hardly under load");
    assert!(waiting < 5_000.max(newest / 20), "{waiting} jobs wait: it did not keep up");
}

#[test]
fn memory_stays_flat_under_load_on_postgres() {
    let database = Database::new(Server::shared_url(), None);
    stays_flat(&database.url());
}

#[test]
fn memory_stays_flat_under_load_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    stays_flat(&format!("sqlite:{}", folder.path().join("acta.db").display()));
}

/// The number of the newest job, and how many still wait.
fn progress(url: &str) -> (u64, u64) {
    runtime().block_on(async {
        let ledger = Ledger::open(url).await.unwrap();
        let filter = JobFilter { limit: 1, ..JobFilter::default() };
        let newest = ledger.store().jobs(filter).await.unwrap().jobs[0].job.row;
        let (_, tallies) = &ledger.store().queues(QueueFilter::default()).await.unwrap().queues[0];
        let waiting = tallies.iter().filter(|(tally, _)| !tally.0.is_final()).map(|(_, count)| count).sum();
        (newest, waiting)
    })
}
