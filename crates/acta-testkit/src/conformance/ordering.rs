//! Order: places, lanes, priorities.

use acta_core::job::FailureKind;
use acta_core::store::{Action, Claim, Failure, LaneFilter, NewJob, Outcome, Why};
use acta_core::{Backoff, JobId, Span, State};

use crate::desk::{Desk, ids, in_lane, label, namespace, new_job};

const Q: &str = "transactions/q";

fn fail() -> Outcome {
    Outcome::Failed(Failure::new(FailureKind::System, "boom"))
}

/// Claims and finishes until nothing is left; the order of it.
async fn work_off(desk: &Desk, path: &str) -> Vec<JobId> {
    let mut order = Vec::new();
    loop {
        let jobs = desk.claim(path, "r", 1).await;
        let Some(job) = jobs.first() else { return order };
        desk.done(path, job).await;
        order.push(job.identity.id.clone());
    }
}

/// A retry re-enters at its own place; while it backs off nothing else of its lane starts, other lanes do.
pub async fn c001_a_retry_keeps_the_place_of_its_lane_s_head(desk: Desk) {
    let lane = desk.add(Q, vec![in_lane("L"), in_lane("L"), in_lane("L")]).await;
    let first = desk.claim_one(Q, "r").await;
    assert_eq!(first.identity.id, lane[0]);
    let answer = desk.settle(Q, &first, fail()).await.unwrap();
    assert_eq!(answer.state, State::Scheduled);
    let other = desk.add_one(Q, in_lane("M")).await;
    assert_eq!(ids(&desk.claim(Q, "r", 10).await), vec![other]);
    desk.pass(2);
    let again = desk.claim(Q, "r", 10).await;
    assert_eq!(ids(&again), vec![lane[0].clone()]);
    assert_eq!(again[0].standing.attempts, 2);
    desk.done(Q, &again[0]).await;
    assert_eq!(work_off(&desk, Q).await, lane[1..]);
}

/// Never more than one of a lane is out, and what a listing shows is what there is.
pub async fn c003_one_of_a_lane_is_active_and_listings_agree(desk: Desk) {
    desk.add(Q, (0..5).map(|_| in_lane("L")).collect()).await;
    assert_eq!(desk.claim(Q, "r", 10).await.len(), 1);
    assert_eq!(desk.claim(Q, "s", 10).await.len(), 0);
    let all = desk.all(Q).await;
    assert_eq!(all.len(), 5);
    let blocked = all.iter().filter(|found| found.job.standing.state == State::Blocked).count();
    assert_eq!(blocked, 4);
    for found in &all {
        assert_eq!(desk.found(&found.job.identity.id).await, *found);
    }
}

/// Whatever keeps one lane back, another lane's job is handed out.
pub async fn c004_a_blocked_lane_shadows_no_other(desk: Desk) {
    let a = desk.add(Q, vec![in_lane("A"), in_lane("A")]).await;
    let b = desk.add(Q, vec![in_lane("B"), in_lane("B"), in_lane("B")]).await;
    let held = desk.claim_one(Q, "r").await;
    assert_eq!(held.identity.id, a[0]);
    let next = desk.claim_one(Q, "r").await;
    assert_eq!(next.identity.id, b[0], "while A is held");
    desk.done(Q, &next).await;
    desk.settle(Q, &held, fail()).await.unwrap();
    let next = desk.claim_one(Q, "r").await;
    assert_eq!(next.identity.id, b[1], "while A backs off");
    desk.done(Q, &next).await;
    desk.act(Q, &a[0], Action::Pause).await.unwrap();
    assert_eq!(desk.claim_one(Q, "r").await.identity.id, b[2], "while A is paused");
}

/// A head that ends without a word of its holder lets its lane go on, even on its last attempt.
pub async fn c006_c007_the_last_loss_of_a_head_frees_its_lane(desk: Desk) {
    let one = NewJob { max_attempts: Some(1), ..in_lane("L") };
    let jobs = desk.add(Q, vec![one, in_lane("L")]).await;
    for claim in 1..=6 {
        let job = desk.claim_for(Q, "r", 1).await;
        assert_eq!((job.identity.id, job.standing.fence), (jobs[0].clone(), claim));
        desk.pass(2);
    }
    let next = desk.claim_one(Q, "r").await;
    assert_eq!(next.identity.id, jobs[1]);
    let item = desk.item(&jobs[0]).await;
    assert_eq!(item.status, "system-exception");
    assert_eq!(item.exception.unwrap().message, "lease lost 6 times");
}

/// Priority is strict among heads and unlaned jobs: a lower one waits as long as a higher one is there.
pub async fn c010_priority_orders_heads_and_unlaned_jobs_strictly(desk: Desk) {
    let priority =
        |priority, lane: Option<&str>| NewJob { priority: Some(priority), lane: lane.map(label), ..new_job() };
    let jobs = vec![
        priority(10, None),
        priority(50, Some("A")),
        priority(100, Some("A")),
        priority(60, None),
        priority(60, Some("B")),
        new_job(),
    ];
    let jobs = desk.add("plain", jobs).await;
    let order = work_off(&desk, "plain").await;
    // The high one of lane A waits for its head, whose own priority decides when that comes.
    let expected = [3, 4, 1, 2, 5, 0].map(|index: usize| jobs[index].clone());
    assert_eq!(order, expected);
}

/// Cancelling keeps the rest of the lane in order and frees what the cancelled one held.
pub async fn c011_cancelling_a_head_or_a_blocked_member_leaves_the_lane_in_order(desk: Desk) {
    let jobs = desk.add(Q, (0..4).map(|_| in_lane("L")).collect()).await;
    let cancel = Action::Cancel { force: false };
    let head = desk.claim_one(Q, "r").await;
    desk.act(Q, &jobs[1], cancel.clone()).await.unwrap();
    assert_eq!(desk.state(&jobs[1]).await, State::Cancelled);
    let asked = desk.act(Q, &jobs[0], cancel.clone()).await.unwrap();
    assert!(asked.cancel_requested && asked.state == State::Claimed);
    assert_eq!(desk.claim(Q, "s", 5).await.len(), 0, "the head's holder has not answered");
    desk.settle(Q, &head, Outcome::Release).await.unwrap();
    assert_eq!(desk.state(&jobs[0]).await, State::Cancelled);
    assert_eq!(desk.state(&jobs[2]).await, State::Ready);
    desk.act(Q, &jobs[2], cancel).await.unwrap();
    assert_eq!(work_off(&desk, Q).await, jobs[3..]);
    assert!(desk.store.lanes(LaneFilter::all(namespace(Q))).await.unwrap().is_empty(), "nothing is left of the lane");
}

/// The instant that an idle worker waits for is the nearest, not the first one enqueued.
pub async fn c012_the_nearest_instant_is_told_whatever_was_enqueued_first(desk: Desk) {
    let at = |seconds| NewJob { run_at: Some(Desk::at(seconds)), ..new_job() };
    desk.add(Q, vec![at(3_600)]).await;
    assert_eq!(desk.why(Q).await.next_at, Some(Desk::at(3_600)));
    let soon = desk.add_one(Q, at(2)).await;
    let nothing = desk.why(Q).await;
    assert_eq!((nothing.why, nothing.next_at), (Why::Deferred, Some(Desk::at(2))));
    desk.pass(2);
    assert_eq!(desk.claim_one(Q, "r").await.identity.id, soon);
}

/// First in, first out; a job that comes back goes before what was queued after it.
pub async fn order_is_place_and_a_requeued_job_keeps_it(desk: Desk) {
    let jobs = desk.add(Q, vec![new_job(), new_job(), new_job()]).await;
    let first = desk.claim_one(Q, "r").await;
    desk.settle(Q, &first, Outcome::Release).await.unwrap();
    let first = desk.claim_one(Q, "r").await;
    assert_eq!(first.identity.id, jobs[0], "released");
    desk.settle(Q, &first, fail()).await.unwrap();
    desk.pass(2);
    let first = desk.claim_one(Q, "r").await;
    assert_eq!(first.identity.id, jobs[0], "after its back-off");
    desk.settle(Q, &first, Outcome::Snooze(Desk::at(5))).await.unwrap();
    desk.pass(5);
    assert_eq!(work_off(&desk, Q).await, jobs, "after a snooze");
}

/// In a lane the order is that of joining: a later member of higher priority passes nobody.
pub async fn priority_passes_nobody_in_a_lane(desk: Desk) {
    let with = |priority| NewJob { priority: Some(priority), ..in_lane("L") };
    let jobs = desk.add("plain", vec![with(50), with(10), with(100), with(0)]).await;
    assert_eq!(work_off(&desk, "plain").await, jobs);
}

/// Whatever holds a head holds its lane.
pub async fn a_delay_a_pause_a_wait_and_a_loss_hold_the_head_s_place(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L")]).await;
    let head = desk.claim_one(Q, "r").await;
    desk.settle(Q, &head, Outcome::Snooze(Desk::at(10))).await.unwrap();
    assert!(desk.claim(Q, "r", 5).await.is_empty(), "a delay");
    desk.pass(10);
    desk.act(Q, &jobs[0], Action::Pause).await.unwrap();
    assert!(desk.claim(Q, "r", 5).await.is_empty(), "a pause");
    desk.act(Q, &jobs[0], Action::Resume).await.unwrap();
    let head = desk.claim_one(Q, "r").await;
    assert_eq!(head.identity.id, jobs[0]);
    let signal = acta_core::Name::new("signal", "go").unwrap();
    let wait = Outcome::Wait { until: None, signal: Some(signal.clone()) };
    desk.settle(Q, &head, wait).await.unwrap();
    assert!(desk.claim(Q, "r", 5).await.is_empty(), "a wait");
    desk.act(Q, &jobs[0], Action::Signal { name: signal, payload: crate::desk::json("1") }).await.unwrap();
    let head = desk.claim_for(Q, "r", 5).await;
    assert_eq!(head.identity.id, jobs[0]);
    desk.pass(6);
    let again = desk.claim(Q, "s", 5).await;
    assert_eq!(ids(&again), vec![jobs[0].clone()], "a loss");
    desk.done(Q, &again[0]).await;
    assert_eq!(work_off(&desk, Q).await, jobs[1..]);
}

/// One claim of any size takes one of each lane.
pub async fn a_claim_never_hands_out_two_unfinished_members_of_a_lane(desk: Desk) {
    let mut jobs = Vec::new();
    for lane in ["A", "B", "C"] {
        jobs.extend((0..3).map(|_| in_lane(lane)));
    }
    jobs.push(new_job());
    desk.add(Q, jobs).await;
    let claimed = desk.claim(Q, "r", 100).await;
    let lanes: Vec<Option<String>> =
        claimed.iter().map(|job| job.identity.lane.as_ref().map(ToString::to_string)).collect();
    assert_eq!(lanes, ["A", "B", "C"].map(|lane| Some(lane.to_owned())).into_iter().chain([None]).collect::<Vec<_>>());
}

/// The next head is ready, or scheduled if its own time is to come, or still paused.
pub async fn promotion_honours_the_next_one_s_own_delay_and_pause(desk: Desk) {
    let delayed = NewJob { run_at: Some(Desk::at(60)), ..in_lane("L") };
    let jobs = desk.add(Q, vec![in_lane("L"), delayed, in_lane("L")]).await;
    desk.act(Q, &jobs[2], Action::Pause).await.unwrap();
    let head = desk.claim_one(Q, "r").await;
    desk.done(Q, &head).await;
    assert_eq!(desk.state(&jobs[1]).await, State::Scheduled);
    desk.pass(60);
    let head = desk.claim_one(Q, "r").await;
    desk.done(Q, &head).await;
    assert_eq!(desk.state(&jobs[2]).await, State::Ready);
    assert_eq!(desk.item(&jobs[2]).await.paused, Some(true));
    assert!(desk.claim(Q, "r", 1).await.is_empty());
    desk.act(Q, &jobs[2], Action::Resume).await.unwrap();
    assert_eq!(work_off(&desk, Q).await, jobs[2..]);
}

/// A lane belongs to its namespace.
pub async fn lanes_of_two_namespaces_are_two_lanes(desk: Desk) {
    let fast = NewJob { backoff: Some(Backoff::None), lease: Some(Span::from_millis(1_000)), ..in_lane("L") };
    let one = desk.add_one(Q, fast.clone()).await;
    let other = desk.add_one("queues/q", fast).await;
    let claim = |path: &str| Claim { count: 5, ..Claim::one(namespace(path), label("r")) };
    assert_eq!(ids(&desk.claim_with(claim(Q)).await), vec![one]);
    assert_eq!(ids(&desk.claim_with(claim("queues/q")).await), vec![other]);
}
