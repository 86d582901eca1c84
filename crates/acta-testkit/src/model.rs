//! Random operations through the specification and a provider: every answer and the whole ledger compared.

use std::fmt::Write;

use acta_core::job::FailureKind;
use acta_core::store::{
    Action, Claim, Claimant, Dedup, Define, Deliver, Deliveries, Enqueue, Failure, Heartbeats, Hold, LaneFilter,
    NewJob, News, Operation, Outcome, QueueFilter, Report, Settlement, Wave,
};
use acta_core::vitals::{Card, Presence};
use acta_core::{Backoff, Definition, Item, JobId, Name, QueueSettings, Span, Store, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::desk::{Desk, Provider, block_on, book, json, label, namespace};
use crate::invariants::{all_jobs, violations};

/// The namespaces that operations are about: both queue families and a plain one.
const PATHS: [&str; 3] = ["queues/a", "transactions/a", "plain"];
const NAMES: [&str; 3] = ["report", "import", "export"];

/// A number that stands for one of the jobs there are.
type Pick = u16;

/// One operation, in numbers that are bent to what there is when it runs.
#[derive(Clone, Debug)]
pub enum Step {
    /// Adds jobs.
    Enqueue(usize, Vec<JobShape>),
    /// Takes, closes or reopens deliveries of an outbox.
    Deliver(usize, u8, Vec<(u8, JobShape)>),
    /// Claims; some by name, some expecting a job, some with reason and trace.
    Claim(usize, ClaimShape),
    /// Settles a wave, and perhaps claims.
    Settle(usize, Vec<(Pick, ClaimantShape, OutcomeShape)>, Option<ClaimShape>),
    /// Extends leases, and shows a worker or its end.
    Heartbeat(usize, Vec<(Pick, ClaimantShape)>, Option<u8>, Option<(u8, u8)>),
    /// Start, progress, a step.
    Report(usize, Pick, ClaimantShape, u8),
    /// An operator's act.
    Operate(usize, Vec<Pick>, u8, i8),
    /// A pause or its end, of a namespace or a lane.
    Hold(usize, Option<u8>, bool),
    /// Brings in what is due.
    Recover(usize),
    /// Prunes.
    Prune(usize, u8),
    /// Registers a definition or settings.
    Define(u8, u8),
    /// Time passes, in milliseconds.
    Pass(u32),
}

/// A job to add: small numbers for each field.
#[derive(Clone, Debug)]
pub struct JobShape {
    name: Option<u8>,
    lane: Option<u8>,
    priority: Option<u8>,
    run_in: Option<i8>,
    expires_in: Option<i8>,
    key: Option<(u8, bool)>,
    max_attempts: Option<u8>,
    retryable: Option<bool>,
    at_once: bool,
    lease: Option<u8>,
    payload: u8,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct ClaimShape {
    count: usize,
    names: Option<Vec<u8>>,
    expect: Option<Pick>,
    lease: Option<u8>,
    robot: u8,
    told: bool,
}

/// Who says that it holds a job.
#[derive(Clone, Copy, Debug)]
pub enum ClaimantShape {
    /// By the current fence, less this.
    Fence(u8),
    /// By name.
    Robot(u8),
    /// By both.
    Both(u8, u8),
}

/// How a claim ended.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeShape {
    kind: u8,
    number: u8,
}

fn job_shape() -> impl Strategy<Value = JobShape> {
    let first = (
        prop::option::weighted(0.3, 0..3_u8),
        prop::option::weighted(0.6, 0..3_u8),
        prop::option::weighted(0.2, any::<u8>()),
        prop::option::weighted(0.3, any::<i8>()),
        prop::option::weighted(0.2, any::<i8>()),
        prop::option::weighted(0.3, (0..4_u8, any::<bool>())),
    );
    let second = (
        prop::option::weighted(0.3, 0..4_u8),
        prop::option::weighted(0.2, any::<bool>()),
        any::<bool>(),
        prop::option::weighted(0.3, 0..20_u8),
        0..3_u8,
    );
    (first, second).prop_map(|((name, lane, priority, run_in, expires_in, key), rest)| {
        let (max_attempts, retryable, at_once, lease, payload) = rest;
        JobShape { name, lane, priority, run_in, expires_in, key, max_attempts, retryable, at_once, lease, payload }
    })
}

fn claim_shape() -> impl Strategy<Value = ClaimShape> {
    (
        prop_oneof![4 => 1..4_usize, 1 => 0..12_usize],
        prop::option::weighted(0.3, prop::collection::vec(0..4_u8, 0..3)),
        prop::option::weighted(0.2, any::<Pick>()),
        prop::option::weighted(0.5, 0..20_u8),
        0..3_u8,
        any::<bool>(),
    )
        .prop_map(|(count, names, expect, lease, robot, told)| ClaimShape {
            count,
            names,
            expect,
            lease,
            robot,
            told,
        })
}

fn claimant_shape() -> impl Strategy<Value = ClaimantShape> {
    prop_oneof![
        6 => Just(ClaimantShape::Fence(0)),
        1 => (0..3_u8).prop_map(ClaimantShape::Fence),
        1 => (0..3_u8).prop_map(ClaimantShape::Robot),
        1 => (0..2_u8, 0..3_u8).prop_map(|(less, robot)| ClaimantShape::Both(less, robot)),
    ]
}

fn outcome_shape() -> impl Strategy<Value = OutcomeShape> {
    (0..10_u8, any::<u8>()).prop_map(|(kind, number)| OutcomeShape { kind, number })
}

/// Sequences of operations.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let path = || 0..PATHS.len();
    let wave = prop::collection::vec((any::<Pick>(), claimant_shape(), outcome_shape()), 0..4);
    let step = prop_oneof![
        6 => (path(), prop::collection::vec(job_shape(), 0..4)).prop_map(|(path, jobs)| Step::Enqueue(path, jobs)),
        3 => (path(), 0..6_u8, prop::collection::vec((0..5_u8, job_shape()), 0..4))
            .prop_map(|(path, what, jobs)| Step::Deliver(path, what, jobs)),
        8 => (path(), claim_shape()).prop_map(|(path, claim)| Step::Claim(path, claim)),
        8 => (path(), wave, prop::option::weighted(0.3, claim_shape()))
            .prop_map(|(path, wave, claim)| Step::Settle(path, wave, claim)),
        2 => (path(), prop::collection::vec((any::<Pick>(), claimant_shape()), 0..3), prop::option::of(0..20_u8),
              prop::option::of((0..3_u8, 0..4_u8)))
            .prop_map(|(path, beats, lease, worker)| Step::Heartbeat(path, beats, lease, worker)),
        2 => (path(), any::<Pick>(), claimant_shape(), any::<u8>())
            .prop_map(|(path, pick, claimant, news)| Step::Report(path, pick, claimant, news)),
        6 => (path(), prop::collection::vec(any::<Pick>(), 1..3), 0..10_u8, any::<i8>())
            .prop_map(|(path, picks, action, number)| Step::Operate(path, picks, action, number)),
        2 => (path(), prop::option::weighted(0.7, 0..3_u8), any::<bool>())
            .prop_map(|(path, lane, paused)| Step::Hold(path, lane, paused)),
        1 => path().prop_map(Step::Recover),
        1 => (path(), 0..4_u8).prop_map(|(path, limit)| Step::Prune(path, limit)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(what, number)| Step::Define(what, number)),
        5 => prop_oneof![8 => 0..15_000_u32, 1 => any::<u32>()].prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..most)
}

/// Runs random sequences through the specification and all of the providers; `cases` of them, of at most `most` steps.
///
/// A difference panics with the shortest sequence that shows it and the seed that it came from.
pub fn compare(providers: &[Provider], cases: u32, most: usize) {
    let seed = std::env::var("ACTA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x5eed);
    println!("seed {seed}: ACTA_SEED={seed} runs the same sequences again");
    let config = Config { cases, max_shrink_iters: 4_000, failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    let outcome = runner.run(&steps(most), |steps| block_on(run(providers, &steps)).map_err(TestCaseError::fail));
    if let Err(fault) = outcome {
        panic!("seed {seed}: {fault}");
    }
}

async fn run(providers: &[Provider], steps: &[Step]) -> Result<(), String> {
    let model = Desk::open(book);
    let tested: Vec<Desk> = providers.iter().map(|provider| Desk::open(*provider)).collect();
    let mut before = seen(&model).await;
    for (index, step) in steps.iter().enumerate() {
        let answer = without_lane_numbers(&apply(&model, step).await);
        let whole = seen(&model).await;
        for (number, tested) in tested.iter().enumerate() {
            let other = without_lane_numbers(&apply(tested, step).await);
            if answer != other {
                return Err(format!(
                    "step {index} {step:?}\n  specification: {answer}\n  provider {number}:    {other}"
                ));
            }
            let other = seen(tested).await;
            if whole != other {
                return Err(format!("after step {index} {step:?}, provider {number}\n{}", difference(&whole, &other)));
            }
            let wrong = violations(tested.store.as_ref()).await.map_err(|fault| fault.to_string())?;
            if !wrong.is_empty() {
                return Err(format!("after step {index} {step:?}, provider {number}: {wrong:?}"));
            }
        }
        if is_refusal(&answer) && !matches!(step, Step::Pass(_)) && whole != before {
            return Err(format!("step {index} {step:?} was refused with {answer}, and yet changed something"));
        }
        before = whole;
    }
    Ok(())
}

async fn seen(desk: &Desk) -> String {
    without_lane_numbers(&ledger(desk.store.as_ref()).await)
}

/// Which number a lane has is its ledger's own business.
fn without_lane_numbers(text: &str) -> String {
    let mut parts = text.split("LaneNumber(");
    let mut cut = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        cut.push_str("LaneNumber(");
        cut.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    cut
}

/// Whether the whole operation was refused.
fn is_refusal(answer: &str) -> bool {
    answer.starts_with("Err(")
}

/// Does a step; the answer, in words.
async fn apply(desk: &Desk, step: &Step) -> String {
    let store = desk.store.as_ref();
    match step {
        Step::Enqueue(path, jobs) => {
            let jobs = jobs.iter().map(|shape| new_job(shape, *path, now(desk))).collect();
            format!("{:?}", store.enqueue(Enqueue { namespace: namespace(PATHS[*path]), jobs }).await)
        }
        Step::Deliver(path, what, shapes) => {
            let key = |number: u8| label(&format!("delivery {number}"));
            let keys = || shapes.iter().map(|(number, _)| key(*number)).collect();
            let deliveries = match what {
                0 => Deliveries::Close(keys()),
                1 => Deliveries::Reopen(keys()),
                _ => {
                    let job = |shape| new_job(shape, *path, now(desk));
                    Deliveries::Arrive(shapes.iter().map(|(number, shape)| (key(*number), job(shape))).collect())
                }
            };
            format!("{:?}", store.deliver(Deliver { namespace: namespace(PATHS[*path]), deliveries }).await)
        }
        Step::Claim(path, shape) => format!("{:?}", store.claim(claim(desk, *path, shape).await).await),
        Step::Settle(path, wave, then) => {
            let ids = jobs_of(store).await;
            let mut settlements = Vec::new();
            for (pick, who, how) in wave {
                let id = picked(&ids, *pick);
                let claimant = claimant(store, &id, *who).await;
                settlements.push(Settlement { id, claimant, outcome: outcome(*how, now(desk)) });
            }
            let wave = Wave { namespace: namespace(PATHS[*path]), settlements };
            match then {
                Some(shape) => format!("{:?}", store.exchange(wave, claim(desk, *path, shape).await).await),
                None => format!("{:?}", store.settle(wave).await),
            }
        }
        Step::Heartbeat(path, beats, lease, worker) => {
            let ids = jobs_of(store).await;
            let mut told = Vec::new();
            for (pick, who) in beats {
                let id = picked(&ids, *pick);
                let claimant = claimant(store, &id, *who).await;
                told.push((id, claimant));
            }
            let beats = Heartbeats {
                namespace: namespace(PATHS[*path]),
                beats: told,
                lease: lease.map(seconds),
                worker: worker.map(|(number, running)| presence(number, running)),
            };
            format!("{:?}", store.heartbeat(beats).await)
        }
        Step::Report(path, pick, who, news) => {
            let id = picked(&jobs_of(store).await, *pick);
            let claimant = claimant(store, &id, *who).await;
            let news = match news % 4 {
                0 | 1 => News::Started,
                2 => News::Progress(format!("{news} %")),
                _ => News::Step { name: format!("step-{}", news % 8), value: json(&news.to_string()) },
            };
            format!("{:?}", store.report(Report { namespace: namespace(PATHS[*path]), id, claimant, news }).await)
        }
        Step::Operate(path, picks, action, number) => {
            let ids = jobs_of(store).await;
            let operation = Operation {
                namespace: namespace(PATHS[*path]),
                ids: picks.iter().map(|pick| picked(&ids, *pick)).collect(),
                action: act(*action, *number, now(desk)),
                actor: (*number > 0).then(|| label("operator")),
                reason: (*number > 50).then(|| "because".into()),
            };
            format!("{:?}", store.operate(operation).await)
        }
        Step::Hold(path, lane, paused) => {
            let hold = Hold {
                namespace: namespace(PATHS[*path]),
                lane: lane.map(|lane| label(&format!("lane {lane}"))),
                paused: *paused,
                actor: None,
                reason: None,
            };
            format!("{:?}", store.hold(hold).await)
        }
        Step::Recover(path) => format!("{:?}", store.recover(namespace(PATHS[*path])).await),
        Step::Prune(path, limit) => format!("{:?}", store.prune(namespace(PATHS[*path]), usize::from(*limit)).await),
        Step::Define(what, number) => format!("{:?}", store.define(define(*what, *number)).await),
        Step::Pass(millis) => {
            desk.clock.advance_ms(i64::from(*millis));
            String::new()
        }
    }
}

fn now(desk: &Desk) -> Timestamp {
    acta_core::Clock::now(desk.clock.as_ref())
}

fn seconds(count: u8) -> Span {
    Span::from_millis(i64::from(count) * 1_000)
}

/// An instant some seconds from now.
fn in_seconds(now: Timestamp, count: i8) -> Timestamp {
    now.plus_ms(i64::from(count) * 500)
}

fn name(number: u8) -> Name {
    // One of them differs from another only by case.
    let text = NAMES.get(usize::from(number)).copied().unwrap_or("Report");
    Name::new("name", text).unwrap_or_else(|fault| panic!("{fault}"))
}

/// A worker that runs so many jobs; with none it has ended.
fn presence(number: u8, running: u8) -> Presence {
    let id = label(&format!("worker {number}"));
    if running == 0 {
        return Presence::Gone(id);
    }
    let said = || label(&format!("of {number} \"{running}\""));
    let (pid, running) = (u32::from(number), u32::from(running));
    Presence::Here(Card { id, robot: said(), host: said(), pid, version: said(), concurrency: 4, running })
}

fn new_job(shape: &JobShape, path: usize, now: Timestamp) -> NewJob {
    let is_plain = path == 2;
    NewJob {
        name: shape.name.map(name),
        lane: shape.lane.map(|lane| label(&format!("lane {lane}"))),
        // Refused in the queue families, so seldom given there.
        priority: shape.priority.filter(|priority| is_plain || *priority > 250).map(|priority| priority % 104),
        run_at: shape.run_in.map(|count| in_seconds(now, count)),
        expires_at: shape.expires_in.map(|count| in_seconds(now, count)),
        lease: shape.lease.map(seconds),
        key: shape.key.map(|(key, _)| label(&format!("INV-{key}"))),
        dedup: shape.key.map(|(key, while_live)| Dedup { key: label(&format!("key {key}")), while_live }),
        max_attempts: shape.max_attempts.map(u32::from),
        retryable: shape.retryable,
        backoff: shape.at_once.then_some(Backoff::None),
        ..NewJob::new(json(&format!("{{\"n\": {}}}", shape.payload)))
    }
}

async fn claim(desk: &Desk, path: usize, shape: &ClaimShape) -> Claim {
    let ids = jobs_of(desk.store.as_ref()).await;
    Claim {
        namespace: namespace(PATHS[path]),
        robot: label(&format!("robot {}", shape.robot)),
        count: shape.count,
        lease: shape.lease.map(seconds),
        names: shape.names.as_ref().map(|names| names.iter().map(|number| name(*number)).collect()),
        expect: shape.expect.map(|pick| picked(&ids, pick)),
        why: shape.told,
        trace: shape.told,
    }
}

async fn claimant(store: &dyn Store, id: &JobId, shape: ClaimantShape) -> Claimant {
    let fence = store.job(id.clone()).await.map_or(1, |found| found.job.standing.fence);
    let robot = |number: u8| Some(label(&format!("robot {number}")));
    match shape {
        ClaimantShape::Fence(less) => Claimant::fence(fence.saturating_sub(u64::from(less))),
        ClaimantShape::Robot(number) => Claimant { fence: None, robot: robot(number) },
        ClaimantShape::Both(less, number) => {
            Claimant { fence: Some(fence.saturating_sub(u64::from(less))), robot: robot(number) }
        }
    }
}

fn outcome(shape: OutcomeShape, now: Timestamp) -> Outcome {
    let number = shape.number;
    let signal = || Some(name(number % 2));
    let until = || in_seconds(now, number.cast_signed());
    let failure = |kind| {
        let retry_after = (number > 200).then(|| seconds(number % 10));
        Outcome::Failed(Failure { retry_after, ..Failure::new(kind, format!("failure {number}")) })
    };
    match shape.kind {
        0 | 1 => Outcome::Succeeded(None),
        2 => Outcome::Succeeded(Some(json(&number.to_string()))),
        3 | 4 => failure(FailureKind::System),
        5 => failure(FailureKind::Business),
        6 => Outcome::Wait {
            until: (number > 128).then(until),
            signal: (!number.is_multiple_of(8)).then(signal).flatten(),
        },
        7 => Outcome::Snooze(until()),
        8 => Outcome::Release,
        _ => Outcome::Cancelled,
    }
}

fn act(action: u8, number: i8, now: Timestamp) -> Action {
    match action {
        0 => Action::Cancel { force: false },
        1 => Action::Cancel { force: true },
        2 => Action::Skip,
        3 => Action::Pause,
        4 | 5 => Action::Resume,
        6 => Action::Reprioritise(number.unsigned_abs()),
        7 => Action::Postpone(in_seconds(now, number)),
        8 => Action::Restart,
        _ => Action::Signal { name: name(number.unsigned_abs() % 2), payload: json(&number.to_string()) },
    }
}

fn define(what: u8, number: u8) -> Define {
    let retention = (number > 128).then(|| seconds(number % 60));
    if what < 64 {
        let settings = QueueSettings { lease: number.is_multiple_of(2).then(|| seconds(number % 30)), retention };
        return Define::Queue(namespace(PATHS[usize::from(what) % PATHS.len()]), settings);
    }
    Define::Job(Definition {
        lane: number.is_multiple_of(5).then(|| label("lane 0")),
        max_attempts: number.is_multiple_of(3).then_some(u32::from(number % 4)),
        backoff: number.is_multiple_of(4).then_some(Backoff::None),
        lease: number.is_multiple_of(7).then(|| seconds(number % 9)),
        retention,
        ..Definition::new(name(what % 4))
    })
}

/// The ids of all jobs, oldest first.
async fn jobs_of(store: &dyn Store) -> Vec<JobId> {
    let jobs = all_jobs(store).await.unwrap_or_else(|fault| panic!("{fault}"));
    jobs.into_iter().rev().map(|found| found.job.identity.id).collect()
}

fn picked(ids: &[JobId], pick: Pick) -> JobId {
    let unknown = || JobId::new("nobody").unwrap_or_else(|fault| panic!("{fault}"));
    if ids.is_empty() { unknown() } else { ids[usize::from(pick) % ids.len()].clone() }
}

/// Everything that can be seen of a ledger, in words.
async fn ledger(store: &dyn Store) -> String {
    let mut text = String::new();
    let jobs = all_jobs(store).await.unwrap_or_else(|fault| panic!("{fault}"));
    for found in &jobs {
        let id = &found.job.identity.id;
        let item = serde_json::to_string(&Item::new(&found.namespace, &found.job)).unwrap_or_default();
        let place = (found.job.standing.place, found.job.standing.lane_paused, found.job.standing.settled);
        let _ = writeln!(text, "{item} {place:?}");
        let _ = writeln!(text, "  {:?}", store.history(id.clone()).await);
        let _ = writeln!(text, "  {:?}", store.steps(id.clone()).await);
        let _ = writeln!(text, "  {:?}", store.explain(id.clone()).await);
    }
    let _ = writeln!(text, "{:?}", store.queues(QueueFilter { namespace: None, activity: Some(1_440) }).await);
    for path in PATHS {
        let _ = writeln!(text, "{:?}", store.lanes(LaneFilter::all(namespace(path))).await);
        for key in 0..4 {
            let key = label(&format!("key {key}"));
            let _ = writeln!(text, "{:?}", store.key_holder(namespace(path), key).await);
        }
    }
    text
}

/// The first line that differs.
fn difference(one: &str, other: &str) -> String {
    let first = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    match first {
        Some((one, other)) => format!("  specification: {one}\n  provider:      {other}"),
        None => format!("  one has {} lines, the other {}", one.lines().count(), other.lines().count()),
    }
}
