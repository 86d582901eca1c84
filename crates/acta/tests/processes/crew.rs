//! Worker processes, the test's hold on them, and the jobs that they work on.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use acta::{Context, Job, JobError, Ledger, Worker};
use acta_core::history::Happening;
use acta_core::store::{JobFilter, QueueFilter};
use acta_core::{Namespace, State};
use serde::{Deserialize, Serialize};

use super::checker::{Said, check};
use super::record::{Line, Record, read};

const LEDGER: &str = "ACTA_TEST_LEDGER";
const RECORD: &str = "ACTA_TEST_RECORD";
const QUEUE: &str = "numbered";
/// What did not happen by then does not happen.
const PATIENCE: Duration = Duration::from_mins(10);
/// How many handlers a process runs at once.
const HANDLERS: usize = 8;

/// A job that only tells that it ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Numbered {
    job: u32,
    lane: u32,
    nth: u32,
}

impl Job for Numbered {
    const NAME: &'static str = "numbered";
    const QUEUE: &'static str = QUEUE;
    const LEASE: Option<Duration> = Some(Duration::from_secs(2));
    const MAX_ATTEMPTS: Option<u32> = Some(100);

    fn lane(&self) -> Option<String> {
        Some(format!("lane {}", self.lane))
    }
}

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) jobs: u32,
    pub(crate) lanes: u32,
}

/// Works until it is asked to end, if this process is a worker of a crew.
pub(crate) fn work_if_told() {
    let (Ok(url), Ok(record)) = (std::env::var(LEDGER), std::env::var(RECORD)) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ledger = loop {
            if let Ok(ledger) = Ledger::open(&url).await {
                break ledger;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let record = std::sync::Arc::new(Record::open(Path::new(&record)));
        let pid = std::process::id();
        let handler = move |Numbered { job, lane, nth }: Numbered, context: Context| {
            let record = std::sync::Arc::clone(&record);
            async move {
                let fence = context.fence();
                record.add(&Line::Begun { pid, job, lane, nth, attempt: context.attempt(), fence });
                tokio::time::sleep(Duration::from_millis(u64::from(job % 7))).await;
                record.add(&Line::Ended { pid, job, fence });
                Ok::<_, JobError>(())
            }
        };
        let worker = Worker::new(&ledger, QUEUE).handle(handler).concurrency(HANDLERS).poll(Duration::from_millis(200));
        worker.grace(Duration::from_secs(5)).run(acta::shutdown_signal()).await.unwrap();
    });
}

/// The workers of one ledger.
pub(crate) struct Crew {
    url: String,
    folder: tempfile::TempDir,
    record: Record,
    shape: Shape,
    workers: Vec<Child>,
}

impl Crew {
    /// Enqueues the jobs; nobody works yet.
    pub(crate) fn new(url: &str, shape: Shape) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::open(&folder.path().join("record"));
        let jobs = (0..shape.jobs).map(|job| Numbered { job, lane: job % shape.lanes, nth: job / shape.lanes });
        let jobs: Vec<Numbered> = jobs.collect();
        run(async {
            let ledger = Ledger::open(url).await.unwrap();
            for jobs in jobs.chunks(1_000) {
                ledger.enqueue_many(jobs).await.unwrap();
            }
        });
        Self { url: url.to_owned(), folder, record, shape, workers: Vec::new() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// Starts so many more workers.
    pub(crate) fn start(&mut self, count: usize) {
        for _ in 0..count {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["worker", "--exact", "--test-threads=1"]).env(LEDGER, &self.url).env(RECORD, self.path());
            command.env_remove("RUST_BACKTRACE").stdout(Stdio::null());
            self.workers.push(command.spawn().unwrap());
        }
    }

    fn ends(&self) -> usize {
        read(&self.path()).iter().filter(|line| matches!(line, Line::Ended { .. })).count()
    }

    /// Returns once so many more handlers have returned.
    pub(crate) fn wait_for_ends(&self, more: u32) {
        let (began, wanted) = (Instant::now(), self.ends() + more as usize);
        while self.ends() < wanted && !self.is_drained() {
            assert!(began.elapsed() < PATIENCE, "nothing goes on: {} have ended", self.ends());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether every job has ended.
    pub(crate) fn is_drained(&self) -> bool {
        run(async {
            let ledger = Ledger::open(&self.url).await.unwrap();
            let overview = ledger.store().queues(QueueFilter::default()).await.unwrap();
            let live = overview.queues.iter().flat_map(|(_, tallies)| tallies.iter());
            live.filter(|(tally, _)| !tally.0.is_final()).map(|(_, count)| count).sum::<u64>() == 0
        })
    }

    /// Returns once every job has ended.
    pub(crate) fn wait_until_drained(&self) {
        let began = Instant::now();
        while !self.is_drained() {
            assert!(began.elapsed() < PATIENCE, "it is never drained: {} have ended", self.ends());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills one worker after another, and starts another in its place, until every job has ended; how many were killed.
    pub(crate) fn kill_until_drained(&mut self, pause: Duration) -> usize {
        let (began, mut kills) = (Instant::now(), 0);
        // Nobody dies before anything was done.
        self.wait_for_ends(1);
        loop {
            let mut victim = self.workers.remove(0);
            victim.kill().unwrap();
            victim.wait().unwrap();
            self.record.add(&Line::Gone { pid: victim.id() });
            kills += 1;
            self.start(1);
            let killed = Instant::now();
            while killed.elapsed() < pause {
                if self.is_drained() {
                    return kills;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(began.elapsed() < PATIENCE, "it is never drained: {} have ended", self.ends());
        }
    }

    /// Asks one worker to end; how long it took.
    pub(crate) fn terminate_one(&mut self) -> Duration {
        let mut one = self.workers.remove(0);
        let asked = Instant::now();
        assert!(Command::new("kill").arg(one.id().to_string()).status().unwrap().success());
        assert!(one.wait().unwrap().success(), "it ends as if nothing had been the matter");
        let took = asked.elapsed();
        self.record.add(&Line::Gone { pid: one.id() });
        took
    }

    /// How many workers run.
    pub(crate) fn alive(&mut self) -> usize {
        self.workers.iter_mut().filter_map(|worker| worker.try_wait().unwrap().is_none().then_some(())).count()
    }

    /// Ends the workers, and lets the checker decide.
    pub(crate) fn finish(mut self) {
        while !self.workers.is_empty() {
            self.terminate_one();
        }
        let said = run(self.said());
        let wrong = check(self.shape.jobs, &read(&self.path()), &said);
        assert!(wrong.is_empty(), "{} faults, the first: {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    }

    async fn said(&self) -> Vec<Said> {
        let ledger = Ledger::open(&self.url).await.unwrap();
        let namespace: Namespace = QUEUE.parse().unwrap();
        let mut filter = JobFilter { namespace: Some(namespace), limit: 1_000, ..JobFilter::default() };
        let mut said = Vec::new();
        loop {
            let page = ledger.store().jobs(filter.clone()).await.unwrap();
            for found in page.jobs {
                let standing = &found.job.standing;
                let payload: Numbered = serde_json::from_str(found.job.identity.payload.as_str()).unwrap();
                // A job that was claimed once has nothing in its record.
                let history = match standing.fence {
                    1 => Vec::new(),
                    _ => ledger.store().history(found.job.identity.id.clone()).await.unwrap(),
                };
                let losses = history.iter().filter(|entry| entry.event == Happening::LeaseLost).count() as u64;
                said.push(Said {
                    job: payload.job,
                    succeeded: standing.state == State::Succeeded,
                    attempts: standing.attempts,
                    fence: standing.fence,
                    losses,
                    other_entries: history.len() as u64 - losses,
                });
            }
            match page.next {
                Some(next) => filter.after_row = Some(next),
                None => return said,
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
