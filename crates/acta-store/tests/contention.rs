//! PostgreSQL under everything at once: nobody waits in a circle, no lane is left without a head, nothing ready stays unseen.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use acta_core::store::{
    Action, Claim, ClaimOutcome, Claimant, Define, Enqueue, Failure, Heartbeats, JobFilter, NewJob, Operation, Outcome,
    Settlement, Wave,
};
use acta_core::{Error, JobId, Label, Namespace, QueueSettings, Span, Store};
use acta_store::{PostgresStore, postgres};
use acta_testkit::desk::{json, label};
use acta_testkit::invariants::violations;
use acta_testkit::postgres::{Database, Server};
use tokio::task::JoinSet;

const QUEUE: &str = "busy";
const LANES: [&str; 4] = ["A", "B", "C", "D"];

fn queue() -> Namespace {
    QUEUE.parse().unwrap()
}

fn open(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::new(&url.parse().unwrap(), postgres::Options::default()).unwrap())
}

/// One client that does the same until it is told to stop; how often.
struct Client {
    store: Arc<PostgresStore>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Client {
    fn goes_on(&self) -> bool {
        self.done.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }

    async fn some_ids(&self, seed: u64) -> Vec<JobId> {
        let filter = JobFilter { namespace: Some(queue()), limit: 40, ..JobFilter::default() };
        let page = self.store.jobs(filter).await.unwrap();
        let wanted = |index: &usize| (*index as u64).is_multiple_of(seed % 5 + 2);
        page.jobs
            .into_iter()
            .enumerate()
            .filter(|(index, _)| wanted(index))
            .map(|(_, found)| found.job.identity.id)
            .collect()
    }
}

fn in_lane(lane: &str) -> NewJob {
    NewJob { lane: Some(label(lane)), ..NewJob::new(json("{}")) }
}

/// Enqueues into these lanes, in this order, each call.
async fn enqueue(client: Client, lanes: Vec<&'static str>) -> Result<(), Error> {
    while client.goes_on() {
        let mut jobs: Vec<NewJob> = lanes.iter().map(|lane| in_lane(lane)).collect();
        jobs.push(NewJob::new(json("{}")));
        client.store.enqueue(Enqueue { namespace: queue(), jobs }).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Claims, extends, settles: done, failed, given back.
async fn work(client: Client, robot: String) -> Result<(), Error> {
    let mut wave: Vec<Settlement> = Vec::new();
    while client.goes_on() {
        let claim = Claim { count: 7, ..Claim::one(queue(), Label::new("robot", &robot)?) };
        let exchanged =
            client.store.exchange(Wave { namespace: queue(), settlements: std::mem::take(&mut wave) }, claim).await?;
        let ClaimOutcome::Claimed(jobs) = exchanged.1.outcome else { continue };
        let beats = jobs.iter().map(|job| (job.identity.id.clone(), Claimant::fence(job.standing.fence))).collect();
        client.store.heartbeat(Heartbeats { namespace: queue(), beats, lease: None, worker: None }).await?;
        for (index, job) in jobs.into_iter().enumerate() {
            let failure = Failure::new(acta_core::job::FailureKind::System, "again");
            let outcome = match index % 7 {
                5 => Outcome::Failed(Failure { retry_after: Some(Span::from_millis(1)), ..failure }),
                6 => Outcome::Release,
                _ => Outcome::Succeeded(None),
            };
            let claimant = Claimant::fence(job.standing.fence);
            wave.push(Settlement { id: job.identity.id, claimant, outcome });
        }
    }
    client.store.settle(Wave { namespace: queue(), settlements: wave }).await.map(|_| ())
}

/// Cancels, pauses, resumes, reprioritises.
async fn operate(client: Client, mut seed: u64) -> Result<(), Error> {
    while client.goes_on() {
        seed += 1;
        let ids = client.some_ids(seed).await;
        let action = match seed % 5 {
            0 => Action::Cancel { force: false },
            1 => Action::Reprioritise(u8::try_from(seed % 101).unwrap_or_default()),
            2 => Action::Pause,
            3 => Action::Resume,
            _ => Action::Restart,
        };
        let ids = if seed.is_multiple_of(2) { ids } else { ids.into_iter().rev().collect() };
        client.store.operate(Operation { namespace: queue(), ids, action, actor: None, reason: None }).await?;
    }
    Ok(())
}

/// Recovers and prunes.
async fn tend(client: Client) -> Result<(), Error> {
    while client.goes_on() {
        client.store.recover(queue()).await?;
        client.store.prune(queue(), 50).await?;
    }
    Ok(())
}

#[test]
fn everything_at_once_leads_to_no_circle_and_strands_no_lane() {
    let database = Database::new(Server::shared_url(), Some(common::template()));
    let seconds = if std::env::var_os("ACTA_LONG").is_some() { 60 } else { 5 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(at_once(&database.url(), Duration::from_secs(seconds)));
}

async fn at_once(url: &str, length: Duration) {
    let store = open(url);
    let settings = QueueSettings { retention: Some(Span::from_millis(200)), lease: Some(Span::from_millis(2_000)) };
    store.define(Define::Queue(queue(), settings)).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut counts: BTreeMap<&str, Arc<AtomicU64>> = BTreeMap::new();
    let mut client = |what: &'static str| Client {
        store: open(url),
        stop: Arc::clone(&stop),
        done: Arc::clone(counts.entry(what).or_default()),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(enqueue(client("enqueue"), LANES.to_vec()));
    tasks.spawn(enqueue(client("enqueue"), LANES.into_iter().rev().collect()));
    for number in 0..3 {
        tasks.spawn(work(client("work"), format!("robot {number}")));
    }
    tasks.spawn(operate(client("operate"), 0));
    tasks.spawn(operate(client("operate"), 3));
    tasks.spawn(tend(client("tend")));
    tasks.spawn(tend(client("tend")));
    let began = Instant::now();
    while began.elapsed() < length {
        tokio::select! {
            Some(ended) = tasks.join_next() => panic!("a client gave up: {:?}", ended.unwrap()),
            () = tokio::time::sleep(length.saturating_sub(began.elapsed())) => {}
        }
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap().unwrap();
    }
    for (what, count) in &counts {
        assert!(count.load(Ordering::Relaxed) > 20, "{what} was done {count:?} times only");
    }
    drain(&store).await;
    assert_eq!(violations(store.as_ref()).await.unwrap(), Vec::<String>::new());
}

/// Works off all that is left: every lane must go on to its end.
async fn drain(store: &PostgresStore) {
    let began = Instant::now();
    loop {
        let filter = JobFilter { namespace: Some(queue()), limit: 1_000, ..JobFilter::default() };
        let mut live: Vec<JobId> = Vec::new();
        let mut filter = filter;
        loop {
            let page = store.jobs(filter.clone()).await.unwrap();
            let is_live = |found: &acta_core::store::Found| !found.job.standing.state.is_final();
            live.extend(page.jobs.into_iter().filter(is_live).map(|found| found.job.identity.id));
            match page.next {
                Some(next) => filter.after_row = Some(next),
                None => break,
            }
        }
        if live.is_empty() {
            return;
        }
        assert!(began.elapsed() < Duration::from_mins(2), "{} jobs are never handed out", live.len());
        for ids in live.chunks(1_000) {
            let operation =
                Operation { namespace: queue(), ids: ids.to_vec(), action: Action::Resume, actor: None, reason: None };
            store.operate(operation).await.unwrap();
        }
        let claim = Claim { count: 1_000, ..Claim::one(queue(), label("last")) };
        while let ClaimOutcome::Claimed(jobs) = store.claim(claim.clone()).await.unwrap().outcome {
            let settle = |job: acta_core::Job| Settlement {
                claimant: Claimant::fence(job.standing.fence),
                id: job.identity.id,
                outcome: Outcome::Succeeded(None),
            };
            let settlements = jobs.into_iter().map(settle).collect();
            let answers = store.settle(Wave { namespace: queue(), settlements }).await.unwrap();
            assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        }
    }
}
