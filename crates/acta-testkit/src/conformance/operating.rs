//! What operators do: cancel, pause, restart, postpone, prune, look.

use acta_core::explain::Reason;
use acta_core::job::FailureKind;
use acta_core::store::{Action, Define, Failure, Hold, JobFilter, LaneFilter, NewJob, Operation, Outcome, QueueFilter};
use acta_core::{Definition, Name, QueueSettings, Span, State};

use crate::desk::{Desk, ids, in_lane, json, label, namespace, new_job, with_key};

const Q: &str = "transactions/q";
const CANCEL: Action = Action::Cancel { force: false };

/// A success under a valid fence wins; a failure, wait, snooze or release ends as cancelled.
pub async fn c032_a_success_beats_a_requested_cancel_and_nothing_else_does(desk: Desk) {
    let outcomes = [
        (Outcome::Succeeded(None), State::Succeeded),
        (Outcome::Failed(Failure::new(FailureKind::System, "boom")), State::Cancelled),
        (Outcome::Failed(Failure::new(FailureKind::Business, "no")), State::Cancelled),
        (Outcome::Wait { until: Some(Desk::at(9)), signal: None }, State::Cancelled),
        (Outcome::Snooze(Desk::at(9)), State::Cancelled),
        (Outcome::Release, State::Cancelled),
        (Outcome::Cancelled, State::Cancelled),
    ];
    for (outcome, state) in outcomes {
        let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L")]).await;
        let job = desk.claim_one(Q, "r").await;
        let asked = desk.act(Q, &jobs[0], CANCEL).await.unwrap();
        assert!(asked.cancel_requested && asked.changed);
        assert!(!desk.act(Q, &jobs[0], CANCEL).await.unwrap().changed, "asked already");
        assert_eq!(desk.settle(Q, &job, outcome.clone()).await.unwrap().state, state, "{outcome:?}");
        let item = desk.item(&jobs[0]).await;
        assert_eq!(item.cancel_requested, None, "{outcome:?}");
        let next = desk.claim_one(Q, "r").await;
        assert_eq!(next.identity.id, jobs[1], "the lane goes on after {outcome:?}");
        desk.done(Q, &next).await;
    }
    // With its lease over there is nobody to ask.
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_for(Q, "r", 1).await;
    desk.pass(2);
    assert_eq!(desk.act(Q, &id, CANCEL).await.unwrap().state, State::Cancelled);
    assert!(desk.settle(Q, &job, Outcome::Succeeded(None)).await.unwrap_err().is_lease_lost());
}

/// A job held by whoever is gone is visible as held, and can be ended at once: its holder is fenced off.
pub async fn c139_a_held_job_can_be_cancelled_by_force(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L")]).await;
    let job = desk.claim_for(Q, "gone", 3_600).await;
    let item = desk.item(&jobs[0]).await;
    assert_eq!((item.claimed_by, item.lease_expires_at), (Some(label("gone")), Some(Desk::at(3_600))));
    let forced = desk.act(Q, &jobs[0], Action::Cancel { force: true }).await.unwrap();
    assert_eq!(forced.state, State::Cancelled);
    assert!(desk.settle(Q, &job, Outcome::Succeeded(None)).await.unwrap_err().is_lease_lost());
    assert!(desk.heartbeat(Q, &job, 9).await.unwrap_err().is_lease_lost());
    assert_eq!(desk.item(&jobs[0]).await.exception.unwrap().code.as_deref(), Some("cancelled"));
    assert_eq!(ids(&desk.claim(Q, "r", 5).await), jobs[1..]);
}

/// Blocked, ready, scheduled and waiting jobs end at once; ended ones are left as they are.
pub async fn cancelling_ends_at_once_what_nobody_works_on(desk: Desk) {
    let later = NewJob { run_at: Some(Desk::at(60)), ..new_job() };
    let jobs = desk.add(Q, vec![new_job(), in_lane("L"), in_lane("L"), later]).await;
    let waiting = desk.claim_one(Q, "r").await;
    let signal = Name::new("signal", "go").unwrap();
    desk.settle(Q, &waiting, Outcome::Wait { until: None, signal: Some(signal) }).await.unwrap();
    for index in [2, 0, 1, 3] {
        let operated = desk.act(Q, &jobs[index], CANCEL).await.unwrap();
        assert_eq!((operated.state, operated.changed), (State::Cancelled, true), "{index}");
        assert!(!desk.act(Q, &jobs[index], CANCEL).await.unwrap().changed, "a second cancel changes nothing");
        let item = desk.item(&jobs[index]).await;
        assert_eq!((item.status, item.wait), ("system-exception", None));
    }
    let done = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    desk.done(Q, &job).await;
    assert!(desk.act(Q, &done, CANCEL).await.unwrap_err().is_refused());
    let nobody = acta_core::JobId::new("nobody").unwrap();
    assert!(desk.act(Q, &nobody, CANCEL).await.unwrap_err().is_not_found());
}

/// A pause is a flag: state and place stay; on a claimed job it takes effect when it comes back.
pub async fn a_paused_job_is_no_candidate_and_keeps_state_and_place(desk: Desk) {
    let jobs = desk.add(Q, vec![new_job(), new_job(), NewJob { run_at: Some(Desk::at(5)), ..new_job() }]).await;
    for id in &jobs {
        let operated = desk.act(Q, id, Action::Pause).await.unwrap();
        assert!(operated.changed && !desk.act(Q, id, Action::Pause).await.unwrap().changed);
    }
    assert_eq!(desk.state(&jobs[2]).await, State::Scheduled);
    desk.pass(10);
    assert!(desk.claim(Q, "r", 9).await.is_empty());
    for id in [&jobs[1], &jobs[2], &jobs[0]] {
        desk.act(Q, id, Action::Resume).await.unwrap();
    }
    let claimed = desk.claim(Q, "r", 9).await;
    assert_eq!(ids(&claimed), jobs);
    desk.act(Q, &jobs[0], Action::Pause).await.unwrap();
    assert_eq!(desk.heartbeat(Q, &claimed[0], 9).await, Ok(false));
    desk.settle(Q, &claimed[0], Outcome::Release).await.unwrap();
    assert!(desk.claim(Q, "r", 9).await.is_empty());
    desk.done(Q, &claimed[1]).await;
    assert!(desk.act(Q, &jobs[1], Action::Pause).await.unwrap_err().is_refused());
    assert!(desk.act(Q, &jobs[1], Action::Resume).await.unwrap_err().is_refused());
}

/// Only what failed or was cancelled; everything from the beginning but identity, fence and keys; a new place.
pub async fn restart_begins_anew_at_the_end(desk: Desk) {
    let first = NewJob { run_at: Some(Desk::at(1)), expires_at: Some(Desk::at(100)), ..in_lane("L") };
    let jobs = desk.add(Q, vec![first, in_lane("L"), new_job()]).await;
    assert!(desk.act(Q, &jobs[0], Action::Restart).await.unwrap_err().is_refused(), "alive");
    desk.pass(1);
    let head = desk.claim_one(Q, "r").await;
    desk.settle(Q, &head, Outcome::Failed(Failure::new(FailureKind::Business, "no"))).await.unwrap();
    let restarted = desk.act(Q, &jobs[0], Action::Restart).await.unwrap();
    assert_eq!(restarted.state, State::Blocked, "behind the member of its lane that is there");
    let item = desk.item(&jobs[0]).await;
    assert_eq!((item.attempts, item.fence, item.exception, item.finished_at), (0, Some(1), None, None));
    assert_eq!((item.run_at, item.expires_at, item.claimed_by), (None, None, Some(label("r"))));
    let claimed = desk.claim(Q, "r", 9).await;
    assert_eq!(ids(&claimed), jobs[1..]);
    desk.done(Q, &claimed[0]).await;
    let again = desk.claim_one(Q, "r").await;
    assert_eq!((again.identity.id.clone(), again.standing.fence), (jobs[0].clone(), 2));
    assert!(desk.settle(Q, &head, Outcome::Succeeded(None)).await.unwrap_err().is_lease_lost());
    desk.done(Q, &again).await;
    assert!(desk.act(Q, &jobs[0], Action::Restart).await.unwrap_err().is_refused(), "succeeded");

    let path = "transactions/unlaned";
    let jobs = desk.add(path, vec![new_job(), new_job()]).await;
    desk.act(path, &jobs[0], CANCEL).await.unwrap();
    desk.act(path, &jobs[0], Action::Restart).await.unwrap();
    assert_eq!(ids(&desk.claim(path, "r", 9).await), [jobs[1].clone(), jobs[0].clone()], "at the end of the order");
}

/// A key has one live job.
pub async fn restart_is_refused_while_another_live_job_has_the_key(desk: Desk) {
    let while_live = || {
        let mut job = with_key("k");
        job.dedup.as_mut().unwrap().while_live = true;
        job
    };
    let first = desk.add_one(Q, while_live()).await;
    desk.act(Q, &first, CANCEL).await.unwrap();
    let second = desk.add_one(Q, while_live()).await;
    assert_ne!(first, second);
    let refusal = desk.act(Q, &first, Action::Restart).await.unwrap_err();
    assert!(refusal.is_refused() && refusal.to_string().contains(second.as_str()), "{refusal}");
    desk.act(Q, &second, CANCEL).await.unwrap();
    assert_eq!(desk.act(Q, &first, Action::Restart).await.unwrap().state, State::Ready);
    let duplicate = desk.try_add(Q, vec![while_live()]).await.unwrap();
    assert_eq!((&duplicate[0].id, duplicate[0].created), (&first, false), "it holds its key again");
}

/// A restarted job does not take its key from one that has it by right, and does not free it at its end.
pub async fn a_restart_leaves_the_key_to_whoever_has_it(desk: Desk) {
    let mut while_live = with_key("k");
    while_live.dedup.as_mut().unwrap().while_live = true;
    let first = desk.add_one(Q, while_live).await;
    desk.act(Q, &first, CANCEL).await.unwrap();
    let second = desk.add_one(Q, with_key("k")).await;
    let job = desk.claim_one(Q, "r").await;
    desk.done(Q, &job).await;
    desk.act(Q, &first, Action::Restart).await.unwrap();
    let job = desk.claim_one(Q, "r").await;
    desk.done(Q, &job).await;
    let told = desk.try_add(Q, vec![with_key("k")]).await.unwrap().remove(0);
    assert_eq!((told.id, told.created), (second, false));
}

/// A pause is told by whoever is asked about it: the queue, the lane, a job that waits for it.
pub async fn a_pause_tells_since_when_by_whom_and_why(desk: Desk) {
    let id = desk.add_one(Q, in_lane("a")).await;
    let hold = |lane: Option<&str>, paused, actor: &str| Hold {
        namespace: namespace(Q),
        lane: lane.map(label),
        paused,
        actor: Some(label(actor)),
        reason: Some(format!("{actor}'s reason")),
    };
    desk.store.hold(hold(None, true, "ann")).await.unwrap();
    desk.pass(1);
    desk.store.hold(hold(Some("a"), true, "bob")).await.unwrap();
    let overview = desk.store.queues(QueueFilter::default()).await.unwrap();
    let pause = &overview.pauses[&namespace(Q)];
    assert_eq!(
        (pause.since, &pause.actor, pause.reason.as_deref()),
        (Desk::at(0), &Some(label("ann")), Some("ann's reason"))
    );
    let lane = desk.store.lanes(LaneFilter::all(namespace(Q))).await.unwrap().remove(0);
    let pause = lane.pause.unwrap();
    assert_eq!((pause.since, pause.actor), (Desk::at(1), Some(label("bob"))));
    let told = desk.store.explain(id.clone()).await.unwrap();
    assert!(told.since == Some(Desk::at(1)) && told.advice.contains("by bob (bob's reason)"), "{told:?}");
    desk.store.hold(hold(Some("a"), false, "bob")).await.unwrap();
    let told = desk.store.explain(id).await.unwrap();
    assert!(told.since == Some(Desk::at(0)) && told.advice.contains("by ann (ann's reason)"), "{told:?}");
    desk.store.hold(hold(None, false, "ann")).await.unwrap();
    assert!(desk.store.queues(QueueFilter::default()).await.unwrap().pauses.is_empty());
}

/// What no job could be run with is refused when it is defined, and a reason is a line.
pub async fn definitions_and_reasons_are_bounded(desk: Desk) {
    let name = Name::new("name", "report").unwrap();
    let bad = [
        Definition { max_attempts: Some(0), ..Definition::new(name.clone()) },
        Definition { lease: Some(Span::from_millis(0)), ..Definition::new(name.clone()) },
        Definition { priority: Some(101), ..Definition::new(name) },
    ];
    for definition in bad {
        assert!(desk.store.define(Define::Job(definition.clone())).await.unwrap_err().is_invalid(), "{definition:?}");
    }
    let settings = QueueSettings { lease: Some(Span::from_millis(0)), ..QueueSettings::default() };
    assert!(desk.store.define(Define::Queue(namespace(Q), settings)).await.unwrap_err().is_invalid());
    let id = desk.add_one(Q, new_job()).await;
    let operation = Operation {
        namespace: namespace(Q),
        ids: vec![id.clone()],
        action: Action::Pause,
        actor: None,
        reason: Some("x".repeat(4_097)),
    };
    assert!(desk.store.operate(operation).await.unwrap_err().is_invalid());
    let job = desk.claim_one(Q, "r").await;
    let failure =
        Failure { code: Some("ü".repeat(5_000)), ..Failure::new(FailureKind::Business, "ü".repeat(50_000)) };
    desk.settle(Q, &job, Outcome::Failed(failure)).await.unwrap();
    let exception = desk.item(&id).await.exception.unwrap();
    assert!(exception.message.len() < 65 * 1024 && exception.code.unwrap().len() < 1_100, "cut, not lost");
}

/// What is due counts as a candidate, and a pause keeps a lapsed job where it is.
pub async fn explain_sees_what_the_next_claim_would_see(desk: Desk) {
    let due = NewJob { run_at: Some(Desk::at(5)), ..new_job() };
    let jobs = desk.add(Q, vec![due, new_job(), in_lane("L")]).await;
    desk.pass(5);
    let explain = async |id: &acta_core::JobId| desk.store.explain(id.clone()).await.unwrap();
    assert_eq!(explain(&jobs[0]).await.reason, Reason::Next);
    assert_eq!(explain(&jobs[1]).await.blocker.map(|blocker| blocker.id), Some(jobs[0].clone()));
    assert_eq!(ids(&desk.claim(Q, "r", 2).await), jobs[..2]);
    desk.claim_for(Q, "r", 1).await;
    let hold = Hold { namespace: namespace(Q), lane: Some(label("L")), paused: true, actor: None, reason: None };
    desk.store.hold(hold).await.unwrap();
    desk.pass(2);
    assert!(explain(&jobs[2]).await.advice.contains("paused"));
}

/// Another instant, the same place; refused while somebody has it or it waits.
pub async fn postpone_moves_the_instant_and_keeps_the_place(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L"), new_job()]).await;
    let to = |seconds| Action::Postpone(Desk::at(seconds));
    assert_eq!(desk.act(Q, &jobs[0], to(10)).await.unwrap().state, State::Scheduled);
    assert_eq!(desk.act(Q, &jobs[1], to(20)).await.unwrap().state, State::Blocked);
    let other = desk.claim_one(Q, "r").await;
    assert_eq!(other.identity.id, jobs[2]);
    assert!(desk.act(Q, &jobs[2], to(5)).await.unwrap_err().is_refused(), "claimed");
    desk.pass(10);
    let head = desk.claim_one(Q, "r").await;
    assert_eq!(head.identity.id, jobs[0]);
    desk.done(Q, &head).await;
    assert_eq!(desk.state(&jobs[1]).await, State::Scheduled);
    assert_eq!(desk.act(Q, &jobs[1], to(0)).await.unwrap().state, State::Ready, "an instant that has passed");
    let head = desk.claim_one(Q, "r").await;
    let signal = Name::new("signal", "go").unwrap();
    desk.settle(Q, &head, Outcome::Wait { until: None, signal: Some(signal) }).await.unwrap();
    assert!(desk.act(Q, &jobs[1], to(30)).await.unwrap_err().is_refused(), "waiting");
}

/// Any live job of a plain namespace, 0 to 100; refused in the queue families.
pub async fn reprioritise_is_for_plain_namespaces(desk: Desk) {
    let jobs = desk.add("plain", vec![new_job(), new_job()]).await;
    desk.act("plain", &jobs[1], Action::Reprioritise(60)).await.unwrap();
    assert_eq!(desk.item(&jobs[1]).await.priority, Some(60));
    assert!(desk.act("plain", &jobs[1], Action::Reprioritise(101)).await.unwrap_err().is_invalid());
    let claimed = desk.claim("plain", "r", 2).await;
    assert_eq!(ids(&claimed), [jobs[1].clone(), jobs[0].clone()]);
    desk.act("plain", &jobs[0], Action::Reprioritise(1)).await.unwrap();
    let id = desk.add_one(Q, new_job()).await;
    assert!(desk.act(Q, &id, Action::Reprioritise(60)).await.unwrap_err().is_invalid());
}

/// Skipping is cancelling the head of a lane, and nothing else.
pub async fn skip_is_for_heads(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L"), new_job()]).await;
    assert!(desk.act(Q, &jobs[1], Action::Skip).await.unwrap_err().is_refused());
    assert!(desk.act(Q, &jobs[2], Action::Skip).await.unwrap_err().is_refused());
    assert_eq!(desk.act(Q, &jobs[0], Action::Skip).await.unwrap().state, State::Cancelled);
    assert_eq!(desk.state(&jobs[1]).await, State::Ready);
}

/// Of every job what holds it: the blocker's id, its holder, since when, until when.
pub async fn explain_names_the_blocker(desk: Desk) {
    let explain = async |id: &acta_core::JobId| desk.store.explain(id.clone()).await.unwrap();
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L"), new_job(), new_job()]).await;
    let head = desk.claim_for(Q, "robot-1", 60).await;
    let behind_head = explain(&jobs[1]).await;
    assert_eq!(behind_head.reason, Reason::BehindHead);
    let blocker = behind_head.blocker.unwrap();
    assert_eq!((blocker.id, blocker.holder), (jobs[0].clone(), Some(label("robot-1"))));
    assert_eq!((blocker.since, blocker.until), (Some(Desk::at(0)), Some(Desk::at(60))));
    let in_work = explain(&jobs[0]).await;
    assert_eq!((in_work.reason, in_work.since, in_work.until), (Reason::Held, Some(Desk::at(0)), Some(Desk::at(60))));
    assert_eq!(explain(&jobs[2]).await.reason, Reason::Next);
    let behind = explain(&jobs[3]).await;
    assert_eq!(
        (behind.reason, behind.blocker.map(|blocker| blocker.id)),
        (Reason::BehindOthers, Some(jobs[2].clone()))
    );
    desk.act(Q, &jobs[3], Action::Postpone(Desk::at(30))).await.unwrap();
    let deferred = explain(&jobs[3]).await;
    assert_eq!((deferred.reason, deferred.until), (Reason::Deferred, Some(Desk::at(30))));
    desk.act(Q, &jobs[2], Action::Pause).await.unwrap();
    assert_eq!(explain(&jobs[2]).await.reason, Reason::Paused);
    desk.act(Q, &jobs[2], Action::Resume).await.unwrap();
    let hold = |lane: Option<&str>, paused| Hold {
        namespace: namespace(Q),
        lane: lane.map(label),
        paused,
        actor: None,
        reason: None,
    };
    desk.store.hold(hold(None, true)).await.unwrap();
    assert_eq!(explain(&jobs[2]).await.reason, Reason::QueuePaused);
    desk.store.hold(hold(None, false)).await.unwrap();
    desk.done(Q, &head).await;
    desk.store.hold(hold(Some("L"), true)).await.unwrap();
    assert_eq!(explain(&jobs[1]).await.reason, Reason::LanePaused);
    desk.store.hold(hold(Some("L"), false)).await.unwrap();
    let head = desk.claim_for(Q, "robot-2", 1).await;
    desk.pass(2);
    assert_eq!(explain(&jobs[1]).await.reason, Reason::LeaseLapsed);
    let signal = Name::new("signal", "go").unwrap();
    desk.settle(Q, &head, Outcome::Wait { until: None, signal: Some(signal) }).await.unwrap();
    let waiting = explain(&jobs[1]).await;
    assert_eq!(waiting.reason, Reason::WaitingForSignal);
    assert!(waiting.advice.contains("go"));
    assert_eq!(explain(&jobs[0]).await.reason, Reason::Ended);
}

/// Succeeded, failed, cancelled, expired: each goes after its retention, and its history with it.
pub async fn c141_every_final_state_is_pruned_after_its_retention(desk: Desk) {
    let day = 86_400;
    let name = Name::new("name", "short").unwrap();
    let definition = Definition { retention: Some(Span::from_millis(day * 1_000)), ..Definition::new(name.clone()) };
    desk.store.define(Define::Job(definition)).await.unwrap();
    let jobs = vec![
        new_job(),
        new_job(),
        new_job(),
        NewJob { expires_at: Some(Desk::at(1)), ..new_job() },
        NewJob { name: Some(name), ..new_job() },
        new_job(),
    ];
    let jobs = desk.add(Q, jobs).await;
    let claimed = desk.claim(Q, "r", 2).await;
    desk.settle(Q, &claimed[0], Outcome::Succeeded(Some(json("1")))).await.unwrap();
    desk.settle(Q, &claimed[1], Outcome::Failed(Failure::new(FailureKind::Business, "no"))).await.unwrap();
    desk.act(Q, &jobs[2], CANCEL).await.unwrap();
    desk.pass(1);
    desk.store.recover(namespace(Q)).await.unwrap();
    let short = desk.claim_one(Q, "r").await;
    assert_eq!(short.identity.id, jobs[4]);
    desk.done(Q, &short).await;
    let prune = async || desk.store.prune(namespace(Q), 100).await.unwrap().0;
    assert_eq!(prune().await, 0);
    desk.pass(day);
    assert_eq!(prune().await, 1, "its definition's retention");
    desk.pass(29 * day);
    assert_eq!(desk.store.prune(namespace(Q), 3).await.unwrap().0, 3, "in batches");
    assert_eq!(prune().await, 1);
    assert_eq!(ids(&desk.all(Q).await.into_iter().map(|found| found.job).collect::<Vec<_>>()), jobs[5..]);
    assert!(desk.store.job(jobs[1].clone()).await.unwrap_err().is_not_found());
    let settings = QueueSettings { retention: Some(Span::from_millis(1_000)), ..QueueSettings::default() };
    desk.store.define(Define::Queue(namespace(Q), settings)).await.unwrap();
    desk.act(Q, &jobs[5], CANCEL).await.unwrap();
    desk.pass(1);
    assert_eq!(prune().await, 1, "its queue's retention");
}

/// Filters and pages: newest first, every job once.
pub async fn pages_follow_each_other(desk: Desk) {
    let jobs = desk.add(Q, (0..7).map(|_| new_job()).collect()).await;
    desk.add("queues/q", vec![new_job()]).await;
    desk.pass(10);
    let marked = NewJob { key: Some(label("INV-1042")), ..in_lane("L") };
    let marked = desk.add(Q, vec![marked.clone(), marked]).await;
    let filter = JobFilter { namespace: Some(namespace(Q)), limit: 4, ..JobFilter::default() };
    let mut seen = Vec::new();
    let mut after_row = None;
    loop {
        let page = desk.store.jobs(JobFilter { after_row, ..filter.clone() }).await.unwrap();
        seen.extend(page.jobs.into_iter().map(|found| found.job.identity.id));
        after_row = page.next;
        if after_row.is_none() {
            break;
        }
    }
    let newest_first: Vec<_> = jobs.iter().chain(&marked).rev().cloned().collect();
    assert_eq!(seen, newest_first);
    let found = async |filter: JobFilter| {
        let page = desk.store.jobs(JobFilter { limit: 100, ..filter }).await.unwrap();
        page.jobs.into_iter().map(|found| found.job.identity.id).collect::<Vec<_>>()
    };
    let by_key = JobFilter { key: Some(label("INV-1042")), ..JobFilter::default() };
    assert_eq!(found(by_key).await.len(), 2);
    let by_lane = JobFilter { lane: Some(label("L")), status: Some("blocked".into()), ..JobFilter::default() };
    assert_eq!(found(by_lane).await, marked[1..]);
    let since = JobFilter { since: Some(Desk::at(10)), ..JobFilter::default() };
    assert_eq!(found(since).await.len(), 2);
    desk.act(Q, &jobs[0], CANCEL).await.unwrap();
    let failed = JobFilter { status: Some("system-exception".into()), ..JobFilter::default() };
    assert_eq!(found(failed).await, jobs[..1]);
    let pending = JobFilter { status: Some("pending".into()), ..JobFilter::default() };
    assert_eq!(found(pending).await.len(), 8);
    let wrong = JobFilter { status: Some("broken".into()), ..JobFilter::default() };
    assert!(desk.store.jobs(wrong).await.unwrap_err().is_invalid());
}
