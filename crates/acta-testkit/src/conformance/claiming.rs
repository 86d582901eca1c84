//! What a claim hands out, and what it says when it hands out nothing.

use acta_core::store::{Action, Claim, ClaimOutcome, Hold, LeftOut, NewJob, Outcome, Why};
use acta_core::{Name, Namespace, State};

use crate::desk::{Desk, ids, in_lane, label, namespace, new_job};

const Q: &str = "transactions/q";

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn hold(path: &str, lane: Option<&str>, paused: bool) -> Hold {
    Hold { namespace: namespace(path), lane: lane.map(label), paused, actor: Some(label("operator")), reason: None }
}

/// As many are leased as are handed out, never more than asked for.
pub async fn c033_a_claim_hands_out_what_it_returns_and_no_more(desk: Desk) {
    desk.add(Q, (0..50).map(|_| new_job()).collect()).await;
    let mut handed_out = 0;
    for count in [1, 7, 2, 30, 30] {
        let jobs = desk.claim(Q, "r", count).await;
        assert!(jobs.len() <= count);
        handed_out += jobs.len();
        let leased = desk.all(Q).await.iter().filter(|found| found.job.standing.state == State::Claimed).count();
        assert_eq!(leased, handed_out);
    }
    assert_eq!(handed_out, 50);
}

/// A claim says who and when; both stay after a requeue, and the next claim says them anew.
pub async fn a_claim_stamps_who_and_when(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    for (robot, second) in [("first", 0), ("second", 7)] {
        let job = desk.claim_one(Q, robot).await;
        desk.settle(Q, &job, Outcome::Release).await.unwrap();
        let item = desk.item(&id).await;
        assert_eq!((item.claimed_by, item.claimed_at), (Some(label(robot)), Some(Desk::at(second))));
        desk.pass(7);
    }
}

/// A worker that does not know a definition does not touch its jobs, and is told so.
pub async fn c147_names_leave_other_definitions_alone(desk: Desk) {
    let of = |text: &str| NewJob { name: Some(name(text)), ..new_job() };
    let jobs = desk.add(Q, vec![of("b"), new_job(), of("a"), of("c"), of("a")]).await;
    let claim = |names: &[&str], count| Claim {
        count,
        names: Some(names.iter().map(|text| name(text)).collect()),
        why: true,
        ..Claim::one(namespace(Q), label("r"))
    };
    assert_eq!(ids(&desk.claim_with(claim(&["a"], 1)).await), vec![jobs[2].clone()]);
    assert_eq!(ids(&desk.claim_with(claim(&["c", "a"], 9)).await), vec![jobs[3].clone(), jobs[4].clone()]);
    let why = async |names: &[&str]| match desk.store.claim(claim(names, 1)).await.unwrap().outcome {
        ClaimOutcome::Nothing(Some(nothing)) => nothing.why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&["unknown"]).await, Why::OtherNames);
    assert_eq!(why(&["a"]).await, Why::Leased);
    assert_eq!(why(&[]).await, Why::OtherNames);
    let differs = desk.store.claim(claim(&["A"], 1)).await.unwrap_err();
    assert!(differs.is_invalid(), "{differs}");
    assert_eq!(ids(&desk.claim(Q, "r", 9).await), jobs[..2]);
}

/// The guard of a dispatcher: exactly that job, or nothing is touched and both are named.
pub async fn an_expected_job_is_claimed_or_nothing_is(desk: Desk) {
    let jobs = desk.add(Q, vec![new_job(), new_job()]).await;
    let expecting =
        |index: usize| Claim { expect: Some(jobs[index].clone()), count: 2, ..Claim::one(namespace(Q), label("r")) };
    let outcome = desk.store.claim(expecting(1)).await.unwrap().outcome;
    assert_eq!(outcome, ClaimOutcome::Mismatch { expected: jobs[1].clone(), found: Some(jobs[0].clone()) });
    for id in &jobs {
        let item = desk.item(id).await;
        assert_eq!((item.state, item.attempts), (Some(State::Ready), 0));
    }
    let ClaimOutcome::Claimed(claimed) = desk.store.claim(expecting(0)).await.unwrap().outcome else { panic!() };
    assert_eq!(ids(&claimed), jobs);
    let outcome = desk.store.claim(expecting(0)).await.unwrap().outcome;
    assert_eq!(outcome, ClaimOutcome::Mismatch { expected: jobs[0].clone(), found: None });
}

/// In their precedence: no such queue, paused, empty, leased, deferred, held.
pub async fn nothing_has_a_reason(desk: Desk) {
    let why = async |desk: &Desk| {
        let nothing = desk.why(Q).await;
        (nothing.why, nothing.next_at)
    };
    assert_eq!(why(&desk).await, (Why::NoSuchQueue, None));
    let id = desk.add_one(Q, new_job()).await;
    desk.store.hold(hold(Q, None, true)).await.unwrap();
    assert_eq!(why(&desk).await, (Why::QueuePaused, None));
    desk.store.hold(hold(Q, None, false)).await.unwrap();
    let job = desk.claim_for(Q, "r", 100).await;
    let later = desk.add_one(Q, NewJob { run_at: Some(Desk::at(50)), ..new_job() }).await;
    assert_eq!(why(&desk).await, (Why::Leased, Some(Desk::at(50))), "the earliest instant of all");
    desk.done(Q, &job).await;
    assert_eq!(why(&desk).await, (Why::Deferred, Some(Desk::at(50))));
    desk.act(Q, &later, Action::Pause).await.unwrap();
    assert_eq!(why(&desk).await, (Why::Held, None));
    desk.act(Q, &later, Action::Cancel { force: false }).await.unwrap();
    assert_eq!(why(&desk).await, (Why::Empty, None));
    assert_eq!(desk.state(&id).await, State::Succeeded);
    let path = "transactions/by-lane";
    let head = desk.add_one(path, in_lane("L")).await;
    desk.claim_for(path, "r", 5).await;
    desk.store.hold(hold(path, Some("L"), true)).await.unwrap();
    let nothing = desk.why(path).await;
    assert_eq!((nothing.why, nothing.next_at), (Why::Held, None), "time alone gives nothing back of a paused lane");
    desk.act(path, &head, Action::Cancel { force: false }).await.unwrap();
    assert_eq!(desk.why(path).await.why, Why::Leased, "but a requested cancel it carries out");
    let unasked = desk.store.claim(Claim::one(namespace(Q), label("r"))).await.unwrap();
    assert_eq!(unasked.outcome, ClaimOutcome::Nothing(None), "worked out only when asked for");
}

/// No claims and no reclaims; settles, heartbeats and promotions go on, and a pause outlives its jobs.
pub async fn a_paused_queue_or_lane_gives_nothing_but_settles_go_on(desk: Desk) {
    for lane in [None, Some("L")] {
        let path = if lane.is_some() { "transactions/by-lane" } else { Q };
        let jobs = desk.add(path, vec![in_lane("L"), in_lane("L"), in_lane("L")]).await;
        let job = desk.claim_for(path, "r", 10).await;
        desk.store.hold(hold(path, lane, true)).await.unwrap();
        desk.store.hold(hold(path, lane, true)).await.unwrap();
        assert_eq!(desk.heartbeat(path, &job, 20).await, Ok(false));
        desk.done(path, &job).await;
        assert_eq!(desk.state(&jobs[1]).await, State::Ready, "promoted");
        assert!(desk.claim(path, "r", 5).await.is_empty());
        desk.store.hold(hold(path, lane, false)).await.unwrap();
        let job = desk.claim_for(path, "r", 10).await;
        assert_eq!(job.identity.id, jobs[1]);
        desk.store.hold(hold(path, lane, true)).await.unwrap();
        desk.pass(100);
        assert!(desk.claim(path, "s", 5).await.is_empty(), "no reclaim");
        assert_eq!(desk.state(&jobs[1]).await, State::Claimed);
        assert_eq!(desk.heartbeat(path, &job, 20).await, Ok(false), "still its holder's");
        desk.done(path, &job).await;
        desk.store.hold(hold(path, lane, false)).await.unwrap();
        assert_eq!(desk.claim_one(path, "s").await.identity.id, jobs[2]);
    }
    desk.store.hold(hold(Q, Some("future"), true)).await.unwrap();
    desk.add_one(Q, in_lane("future")).await;
    assert!(desk.claim(Q, "s", 5).await.is_empty(), "a lane can be paused before its first job");
    let unknown = desk.store.hold(hold(Q, Some("nobody's"), false)).await;
    assert!(unknown.unwrap_err().is_not_found());
    assert!(desk.store.hold(hold("transactions/none", None, true)).await.unwrap_err().is_not_found());
}

/// Individually paused jobs that lapse are put back paused; under a queue's or lane's pause only cancels are.
pub async fn under_a_pause_only_requested_cancels_are_carried_out(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("M"), new_job(), new_job()]).await;
    for _ in &jobs {
        desk.claim_for(Q, "gone", 1).await;
    }
    desk.act(Q, &jobs[1], Action::Cancel { force: false }).await.unwrap();
    desk.act(Q, &jobs[2], Action::Pause).await.unwrap();
    desk.store.hold(hold(Q, Some("L"), true)).await.unwrap();
    desk.store.hold(hold(Q, Some("M"), true)).await.unwrap();
    desk.pass(2);
    assert_eq!(ids(&desk.claim(Q, "r", 9).await), jobs[3..]);
    let states = [State::Claimed, State::Cancelled, State::Ready];
    for (id, state) in jobs.iter().zip(states) {
        assert_eq!(desk.state(id).await, state);
    }
    let item = desk.item(&jobs[2]).await;
    assert_eq!((item.paused, item.lost_leases), (Some(true), Some(1)));

    let path = "transactions/whole";
    let jobs = desk.add(path, vec![new_job(), new_job(), NewJob { run_at: Some(Desk::at(60)), ..new_job() }]).await;
    desk.claim_for(path, "gone", 1).await;
    desk.claim_for(path, "gone", 1).await;
    desk.act(path, &jobs[0], Action::Cancel { force: false }).await.unwrap();
    desk.store.hold(hold(path, None, true)).await.unwrap();
    desk.pass(100);
    assert_eq!(desk.store.recover(namespace(path)).await, Ok(2));
    let states = [State::Cancelled, State::Claimed, State::Ready];
    for (id, state) in jobs.iter().zip(states) {
        assert_eq!(desk.state(id).await, state);
    }
}

/// What was brought in, taken, left out and why.
pub async fn a_trace_tells_what_was_looked_at(desk: Desk) {
    let due = NewJob { run_at: Some(Desk::at(5)), ..new_job() };
    let later = NewJob { run_at: Some(Desk::at(500)), ..new_job() };
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L"), due, later, new_job(), new_job(), new_job()]).await;
    let head = desk.claim_for(Q, "r", 100).await;
    desk.act(Q, &jobs[4], Action::Pause).await.unwrap();
    desk.pass(5);
    let claim = Claim { trace: true, ..Claim::one(namespace(Q), label("s")) };
    let trace = desk.store.claim(claim).await.unwrap().trace.unwrap();
    assert_eq!(trace.brought_in, vec![(jobs[2].clone(), State::Ready)]);
    assert_eq!(trace.taken, vec![jobs[2].clone()]);
    assert_eq!(trace.blocked, 1);
    let expected = [
        (head.identity.id, LeftOut::Leased),
        (jobs[3].clone(), LeftOut::Deferred),
        (jobs[4].clone(), LeftOut::Paused),
        (jobs[5].clone(), LeftOut::LaterInOrder),
        (jobs[6].clone(), LeftOut::LaterInOrder),
    ];
    assert_eq!(trace.left_out, expected);
}

/// Counts and leases that mean nothing are refused before anything is touched.
pub async fn counts_beyond_the_bounds_are_refused(desk: Desk) {
    desk.add(Q, vec![new_job()]).await;
    let claim = |count| Claim { count, ..Claim::one(namespace(Q), label("r")) };
    for count in [0, 10_001, usize::MAX] {
        assert!(desk.store.claim(claim(count)).await.unwrap_err().is_invalid(), "{count}");
    }
    let no_time = Claim { lease: Some(acta_core::Span::from_millis(0)), ..claim(1) };
    assert!(desk.store.claim(no_time).await.unwrap_err().is_invalid());
    assert!(desk.try_add(Q, vec![new_job(); acta_core::policy::MOST_ENQUEUED + 1]).await.unwrap_err().is_invalid());
    let job = desk.claim_one(Q, "r").await;
    desk.settle(Q, &job, Outcome::Release).await.unwrap();
    let unknown: Namespace = namespace("queues/none");
    assert!(desk.store.recover(unknown).await.unwrap_err().is_not_found());
}
