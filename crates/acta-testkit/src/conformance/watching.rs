//! Who works, and how much happens.

use acta_core::job::FailureKind;
use acta_core::store::{Action, Claim, Claimant, Failure, Heartbeats, NewJob, Outcome, Overview, QueueFilter};
use acta_core::vitals::{Card, Flow, Minute, Presence, WorkerView};
use acta_core::{Backoff, State};

use crate::desk::{Desk, label, namespace, new_job, with_key};

const Q: &str = "queues/q";

fn card(id: &str, running: u32) -> Card {
    Card {
        id: label(id),
        robot: label("robot \"1\""),
        host: label("host"),
        pid: u32::MAX,
        version: label("1.2.3"),
        concurrency: 8,
        running,
    }
}

async fn show(desk: &Desk, path: &str, worker: Presence) {
    let beats = Heartbeats { namespace: namespace(path), beats: Vec::new(), lease: None, worker: Some(worker) };
    assert_eq!(desk.store.heartbeat(beats).await.unwrap(), []);
}

async fn workers(desk: &Desk, path: &str) -> Vec<WorkerView> {
    desk.activity(path, 0).await.workers
}

async fn ids(desk: &Desk, path: &str) -> Vec<String> {
    workers(desk, path).await.into_iter().map(|view| view.worker.card.id.to_string()).collect()
}

/// A worker is what it said last, in the namespace in which it said so.
pub async fn a_worker_is_listed_with_what_it_said_until_it_is_gone(desk: Desk) {
    let beats = Heartbeats {
        namespace: namespace(Q),
        beats: Vec::new(),
        lease: None,
        worker: Some(Presence::Here(card("b", 0))),
    };
    assert!(desk.store.heartbeat(beats).await.unwrap_err().is_not_found(), "showing oneself makes no queue");
    desk.add(Q, vec![new_job()]).await;
    desk.add("queues/other", vec![new_job()]).await;
    assert!(workers(&desk, Q).await.is_empty());
    show(&desk, Q, Presence::Here(card("b", 0))).await;
    desk.pass(20);
    show(&desk, Q, Presence::Here(card("a", 1))).await;
    show(&desk, Q, Presence::Here(card("b", 3))).await;
    let [first, second] = &workers(&desk, Q).await[..] else { panic!("two workers") };
    assert_eq!((&first.worker.card, &second.worker.card), (&card("b", 3), &card("a", 1)), "by when they began");
    assert_eq!((first.worker.started_at, first.worker.seen_at), (Desk::at(0), Desk::at(20)));
    assert_eq!((second.worker.started_at, second.worker.seen_at), (Desk::at(20), Desk::at(20)));
    assert!(workers(&desk, "queues/other").await.is_empty());
    show(&desk, Q, Presence::Gone(label("b"))).await;
    assert_eq!(ids(&desk, Q).await, ["a"]);
    show(&desk, Q, Presence::Gone(label("b"))).await;
    assert!(desk.store.queues(QueueFilter::default()).await.unwrap().activity.is_empty(), "nobody asked");
}

/// Three pauses of silence are a death, as far as anybody can tell.
pub async fn a_silent_worker_is_lost_until_it_is_heard_of(desk: Desk) {
    desk.add(Q, vec![new_job()]).await;
    show(&desk, Q, Presence::Here(card("a", 0))).await;
    desk.pass(90);
    assert!(!workers(&desk, Q).await[0].lost);
    desk.pass(1);
    assert!(workers(&desk, Q).await[0].lost);
    show(&desk, Q, Presence::Here(card("a", 0))).await;
    let view = workers(&desk, Q).await.remove(0);
    assert_eq!((view.lost, view.worker.started_at), (false, Desk::at(0)));
}

/// Maintenance forgets the lost ones, a few at a time.
pub async fn workers_unseen_for_a_day_are_forgotten(desk: Desk) {
    desk.add(Q, vec![new_job()]).await;
    show(&desk, Q, Presence::Here(card("a", 0))).await;
    show(&desk, Q, Presence::Here(card("b", 0))).await;
    desk.pass(1);
    show(&desk, Q, Presence::Here(card("c", 0))).await;
    desk.pass(86_400 - 1);
    desk.store.prune(namespace(Q), 10).await.unwrap();
    assert_eq!(ids(&desk, Q).await, ["a", "b", "c"]);
    desk.pass(1);
    desk.store.prune(namespace(Q), 1).await.unwrap();
    assert_eq!(ids(&desk, Q).await, ["b", "c"], "a few at a time");
    desk.store.prune(namespace(Q), 10).await.unwrap();
    assert_eq!(ids(&desk, Q).await, ["c"]);
}

/// A heartbeat of jobs shows the worker, whatever becomes of the jobs.
pub async fn a_worker_is_seen_by_the_heartbeats_of_its_jobs(desk: Desk) {
    desk.add(Q, vec![new_job()]).await;
    let job = desk.claim_for(Q, "r", 30).await;
    desk.pass(10);
    let beat = |fence| (job.identity.id.clone(), Claimant::fence(fence));
    let beats = Heartbeats {
        namespace: namespace(Q),
        beats: vec![beat(1), beat(7)],
        lease: None,
        worker: Some(Presence::Here(card("a", 1))),
    };
    let answers = desk.store.heartbeat(beats).await.unwrap();
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false], "each for itself");
    assert_eq!(workers(&desk, Q).await[0].worker.seen_at, Desk::at(10));
    // Whoever does not say who it is changes nothing about it.
    desk.pass(10);
    desk.heartbeat(Q, &job, 30).await.unwrap();
    assert_eq!(workers(&desk, Q).await[0].worker.seen_at, Desk::at(10));
}

/// The minutes from the beginning of the test on, by their number from there.
async fn minutes(desk: &Desk, path: &str) -> Vec<(i64, Flow)> {
    let began = acta_core::vitals::minute_of(Desk::at(0));
    let told = |minute: Minute| (minute.at.since_ms(began) / 60_000, minute.flow);
    desk.activity(path, 1_440).await.minutes.into_iter().map(told).collect()
}

fn flow([added, claimed, succeeded, failed, cancelled]: [u64; 5]) -> Flow {
    Flow { added, claimed, succeeded, failed, cancelled }
}

fn failure(kind: FailureKind) -> Outcome {
    Outcome::Failed(Failure::new(kind, "no"))
}

/// Of all that can happen to a job, these five steps are counted where they happen.
pub async fn each_minute_tells_what_happened_in_it(desk: Desk) {
    const T: &str = "transactions/t";
    let at_once = || NewJob { backoff: Some(Backoff::None), ..new_job() };
    let expiring = NewJob { expires_at: Some(Desk::at(100)), ..new_job() };
    let added = desk.add(T, vec![at_once(), at_once(), with_key("k"), expiring]).await;
    desk.add(T, vec![with_key("k")]).await;
    assert_eq!(minutes(&desk, T).await, [(0, flow([4, 0, 0, 0, 0]))], "a duplicate is none");
    desk.pass(60);
    let claimed = desk.claim(T, "r", 3).await;
    desk.done(T, &claimed[0]).await;
    desk.settle(T, &claimed[1], failure(FailureKind::System)).await.unwrap();
    desk.settle(T, &claimed[2], failure(FailureKind::Business)).await.unwrap();
    // Maintenance may fold what it likes: nothing of it is seen.
    desk.store.recover(namespace(T)).await.unwrap();
    let so_far = [(0, flow([4, 0, 0, 0, 0])), (1, flow([0, 3, 1, 1, 0]))];
    assert_eq!(minutes(&desk, T).await, so_far, "what is tried again has not failed");
    // What has expired, a lease that is lost and claimed anew, a cancel of several.
    desk.pass(60);
    assert_eq!(desk.claim_for(T, "r", 5).await.identity.id, added[1]);
    desk.pass(6);
    let again = desk.claim_one(T, "s").await;
    assert_eq!(again.standing.fence, 3);
    desk.act(T, &added[1], Action::Cancel { force: true }).await.unwrap();
    assert_eq!(desk.state(&added[3]).await, State::Failed);
    assert_eq!(minutes(&desk, T).await[2..], [(2, flow([0, 2, 0, 1, 1]))]);
    // A restart is no enqueue; the second end is an end.
    desk.pass(180);
    desk.act(T, &added[1], Action::Restart).await.unwrap();
    let again = desk.claim_one(T, "r").await;
    desk.done(T, &again).await;
    desk.store.recover(namespace(T)).await.unwrap();
    assert_eq!(minutes(&desk, T).await[3..], [(5, flow([0, 1, 1, 0, 0]))], "minutes without anything are left out");
    desk.store.recover(namespace(T)).await.unwrap();
    assert_eq!(minutes(&desk, T).await.len(), 4);
    let activity = desk.activity(T, 60).await;
    assert_eq!((activity.at, activity.over(0, 60)), (Desk::at(306), flow([4, 6, 2, 2, 1])));
    assert_eq!(desk.activity(T, 1).await.minutes.len(), 1, "as many as were asked for");
    assert!(desk.activity(T, 0).await.minutes.is_empty());
}

/// Ends and claims of one commit, with promotions between them, are each counted.
pub async fn a_wave_s_ends_and_promotions_are_told_apart(desk: Desk) {
    let jobs: Vec<NewJob> = (0..6).map(|number| crate::desk::in_lane(&format!("lane {}", number % 2))).collect();
    desk.add(Q, jobs).await;
    let claimed = desk.claim(Q, "r", 10).await;
    assert_eq!(claimed.len(), 2);
    let settlements = claimed
        .iter()
        .map(|job| acta_core::store::Settlement {
            id: job.identity.id.clone(),
            claimant: Claimant::fence(1),
            outcome: Outcome::Succeeded(None),
        })
        .collect();
    let wave = acta_core::store::Wave { namespace: namespace(Q), settlements };
    let claim = Claim { count: 10, ..Claim::one(namespace(Q), label("r")) };
    desk.store.exchange(wave, claim).await.unwrap();
    assert_eq!(minutes(&desk, Q).await, [(0, flow([6, 4, 2, 0, 0]))]);
    desk.store.recover(namespace(Q)).await.unwrap();
    assert_eq!(minutes(&desk, Q).await, [(0, flow([6, 4, 2, 0, 0]))]);
}

/// A day of minutes is kept, and what is older is not shown before it is removed, either.
pub async fn minutes_are_kept_for_a_day(desk: Desk) {
    for minute in [0, 1, 1_439] {
        desk.pass(minute * 60 - desk.clock_at());
        desk.add(Q, vec![new_job()]).await;
        desk.store.recover(namespace(Q)).await.unwrap();
    }
    let numbers = |minutes: Vec<(i64, Flow)>| minutes.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    desk.store.prune(namespace(Q), 100).await.unwrap();
    assert_eq!(numbers(minutes(&desk, Q).await), [0, 1, 1_439]);
    desk.pass(60);
    assert_eq!(numbers(minutes(&desk, Q).await), [1, 1_439], "older ones are not shown");
    desk.store.prune(namespace(Q), 100).await.unwrap();
    assert_eq!(numbers(minutes(&desk, Q).await), [1, 1_439]);
    desk.pass(-60);
    assert_eq!(numbers(minutes(&desk, Q).await), [1, 1_439], "and are gone");
}

/// One namespace can be looked at without the others.
pub async fn one_queue_is_shown_alone(desk: Desk) {
    desk.add(Q, vec![new_job()]).await;
    desk.add("other", vec![new_job()]).await;
    let overview = desk.store.queues(QueueFilter::closely(namespace("other"))).await.unwrap();
    let paths: Vec<String> = overview.queues.iter().map(|(queue, _)| queue.namespace.to_string()).collect();
    assert_eq!((paths, overview.activity.len()), (vec!["other".to_owned()], 1));
    let nobody = desk.store.queues(QueueFilter::closely(namespace("nobody"))).await.unwrap();
    assert_eq!(nobody, Overview::default());
}
