//! Settling: outcomes, waves, retries, waits, history.

use acta_core::history::Happening;
use acta_core::job::FailureKind;
use acta_core::store::{Action, Claim, Claimant, Failure, NewJob, News, Outcome, QueueFilter, Settlement, Wave};
use acta_core::{Backoff, Job, Name, Span, State};

use crate::desk::{Desk, ids, in_lane, json, label, namespace, new_job};

const Q: &str = "transactions/q";

fn fail(kind: FailureKind) -> Outcome {
    Outcome::Failed(Failure::new(kind, "boom"))
}

fn by_fence(job: &Job, outcome: Outcome) -> Settlement {
    Settlement { id: job.identity.id.clone(), claimant: Claimant::fence(job.standing.fence), outcome }
}

fn signal(name: &str) -> Name {
    Name::new("signal", name).unwrap()
}

/// Two settles of one claim: one end, the other is refused, and the counts add up.
pub async fn c017_a_job_has_one_end(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    let wave = vec![
        by_fence(&job, Outcome::Succeeded(Some(json("1")))),
        by_fence(&job, Outcome::Failed(Failure::new(FailureKind::Business, "no"))),
    ];
    let answers = desk.store.settle(Wave { namespace: namespace(Q), settlements: wave }).await.unwrap();
    assert!(answers[0].is_ok());
    assert!(answers[1].as_ref().unwrap_err().is_refused());
    let item = desk.item(&id).await;
    assert_eq!((item.status, item.output, item.exception), ("successful", Some(json("1")), None));
    assert_eq!(desk.store.queues(QueueFilter::default()).await.unwrap().queues[0].1.values().sum::<u64>(), 1);
}

/// A wave without members is settled at once, and an empty batch adds nothing.
pub async fn c060_a_wave_of_nothing_is_settled_at_once(desk: Desk) {
    assert_eq!(desk.try_add(Q, Vec::new()).await, Ok(Vec::new()));
    let wave = Wave { namespace: namespace(Q), settlements: Vec::new() };
    assert_eq!(desk.store.settle(wave).await, Ok(Vec::new()));
}

/// What a failure said is what the item shows.
pub async fn c134_failures_keep_kind_message_and_code(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    let failure = Failure {
        code: Some("E42".into()),
        details: Some(json("{\"row\": 3}")),
        ..Failure::new(FailureKind::Business, "o'brien \"\u{1b}[31m\" \u{0}")
    };
    desk.settle(Q, &job, Outcome::Failed(failure)).await.unwrap();
    let item = desk.item(&id).await;
    assert_eq!(item.status, "business-exception");
    let exception = item.exception.unwrap();
    assert_eq!(exception.message, "o'brien \"\u{1b}[31m\" \u{0}");
    assert_eq!((exception.code.as_deref(), exception.details), (Some("E42"), Some(json("{\"row\": 3}"))));
}

/// A reply may be lost: the same settle again is answered as at first, another outcome is refused.
pub async fn a_repeated_settle_gets_the_first_answer_and_no_other_outcome(desk: Desk) {
    let outcomes = [
        Outcome::Succeeded(None),
        Outcome::Succeeded(Some(json("[1]"))),
        fail(FailureKind::System),
        fail(FailureKind::Business),
        Outcome::Snooze(Desk::at(1_000)),
        Outcome::Release,
        Outcome::Wait { until: Some(Desk::at(1_000)), signal: None },
        Outcome::Wait { until: Some(Desk::at(1_000)), signal: Some(signal("go")) },
        Outcome::Cancelled,
    ];
    for (index, outcome) in outcomes.iter().enumerate() {
        let path = format!("transactions/q{index}");
        let id = desk.add_one(&path, new_job()).await;
        let job = desk.claim_one(&path, "r").await;
        let first = desk.settle(&path, &job, outcome.clone()).await.unwrap();
        let before = desk.found(&id).await;
        desk.pass(1);
        assert_eq!(desk.settle(&path, &job, outcome.clone()).await, Ok(first), "{outcome:?}");
        let other = Outcome::Succeeded(Some(json("\"other\"")));
        let refusal = desk.settle(&path, &job, other).await.unwrap_err();
        assert!(refusal.is_refused(), "{outcome:?}: {refusal}");
        assert_eq!(desk.found(&id).await, before, "{outcome:?}");
        if first.state == State::Ready {
            let next = desk.claim_one(&path, "s").await;
            assert!(desk.settle(&path, &job, outcome.clone()).await.unwrap_err().is_lease_lost(), "{outcome:?}");
            desk.done(&path, &next).await;
        }
    }
}

/// The good ones of a wave are applied, the refused ones named.
pub async fn each_of_a_wave_is_judged_by_its_own_fence(desk: Desk) {
    let jobs = desk.add(Q, vec![new_job(), new_job(), new_job()]).await;
    let claimed = desk.claim(Q, "r", 2).await;
    let mut zombie = by_fence(&claimed[1], Outcome::Succeeded(None));
    zombie.claimant = Claimant::fence(7);
    let unknown =
        Settlement { id: acta_core::JobId::new("nobody").unwrap(), ..by_fence(&claimed[0], Outcome::Release) };
    let unclaimed = Settlement { id: jobs[2].clone(), ..by_fence(&claimed[0], Outcome::Release) };
    let wave = vec![zombie, unknown, by_fence(&claimed[0], Outcome::Succeeded(None)), unclaimed];
    let answers = desk.store.settle(Wave { namespace: namespace(Q), settlements: wave }).await.unwrap();
    assert!(answers[0].as_ref().unwrap_err().is_lease_lost());
    assert!(answers[1].as_ref().unwrap_err().is_not_found());
    assert_eq!(answers[2].as_ref().map(|answer| answer.state), Ok(State::Succeeded));
    assert!(answers[3].as_ref().unwrap_err().is_refused());
    assert_eq!(desk.state(&jobs[0]).await, State::Succeeded);
    assert_eq!(desk.state(&jobs[1]).await, State::Claimed);
    assert_eq!(desk.state(&jobs[2]).await, State::Ready);
}

/// 1 s, doubling, ± 10 %, while attempts remain; an asked delay instead, never early; none where none is wanted.
pub async fn a_failure_is_retried_after_the_back_off_while_attempts_remain(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    for (attempt, base) in [(1, 1_000), (2, 2_000)] {
        let job = desk.claim_one(Q, "r").await;
        assert_eq!((job.standing.attempts, job.standing.max_attempts), (attempt, 3));
        let now = acta_core::Clock::now(desk.clock.as_ref());
        let answer = desk.settle(Q, &job, fail(FailureKind::System)).await.unwrap();
        let delay = answer.run_at.unwrap().since_ms(now);
        assert!((base * 9 / 10..=base * 11 / 10).contains(&delay), "{delay}");
        assert_eq!(desk.item(&id).await.run_at, answer.run_at);
        desk.pass(3);
    }
    let job = desk.claim_one(Q, "r").await;
    assert_eq!(desk.settle(Q, &job, fail(FailureKind::System)).await.unwrap().state, State::Failed);
    let item = desk.item(&id).await;
    assert_eq!((item.status, item.attempts, item.claimed_by), ("system-exception", 3, Some(label("r"))));

    let at_once = NewJob { backoff: Some(Backoff::None), ..new_job() };
    desk.add_one(Q, at_once).await;
    let job = desk.claim_one(Q, "r").await;
    assert_eq!(desk.settle(Q, &job, fail(FailureKind::System)).await.unwrap().state, State::Ready);
    let job = desk.claim_one(Q, "r").await;
    let failure = Failure { retry_after: Some(Span::from_millis(60_000)), ..Failure::new(FailureKind::System, "busy") };
    let now = acta_core::Clock::now(desk.clock.as_ref());
    let answer = desk.settle(Q, &job, Outcome::Failed(failure)).await.unwrap();
    assert!((60_000..=66_000).contains(&answer.run_at.unwrap().since_ms(now)));

    desk.add_one(Q, NewJob { retryable: Some(false), ..new_job() }).await;
    let job = desk.claim_one(Q, "r").await;
    assert_eq!(desk.settle(Q, &job, fail(FailureKind::System)).await.unwrap().state, State::Failed);
}

/// A business failure ends a transaction and a plain job on first sight; a job queue retries it.
pub async fn business_failures_end_at_once_but_in_a_job_queue(desk: Desk) {
    for (path, state, status) in [
        ("transactions/q", State::Failed, "business-exception"),
        ("plain", State::Failed, "failed"),
        ("queues/q", State::Scheduled, "queued"),
    ] {
        let id = desk.add_one(path, NewJob { max_attempts: Some(5), ..new_job() }).await;
        let job = desk.claim_one(path, "r").await;
        assert_eq!(desk.settle(path, &job, fail(FailureKind::Business)).await.unwrap().state, state, "{path}");
        assert_eq!(desk.item(&id).await.status, status, "{path}");
    }
}

/// A wait, a snooze, a release are no attempts; the fence counts every claim.
pub async fn waits_snoozes_and_releases_give_the_attempt_back_but_not_the_fence(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let outcomes =
        [Outcome::Snooze(Desk::at(0)), Outcome::Release, Outcome::Wait { until: Some(Desk::at(0)), signal: None }];
    for (index, outcome) in outcomes.into_iter().enumerate() {
        let job = desk.claim_one(Q, "r").await;
        assert_eq!((job.standing.attempts, job.standing.fence), (1, index as u64 + 1));
        desk.settle(Q, &job, outcome).await.unwrap();
        assert_eq!(desk.item(&id).await.attempts, 0);
    }
}

/// A waiting job has neither lease nor worker; its signal or its deadline makes it ready, and its handler can tell.
pub async fn a_wait_ends_by_its_signal_or_its_deadline(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let wait = |until| Outcome::Wait { until, signal: Some(signal("go")) };
    let job = desk.claim_one(Q, "r").await;
    assert_eq!(desk.settle(Q, &job, wait(None)).await.unwrap().state, State::Waiting);
    let item = desk.item(&id).await;
    assert_eq!((item.status, item.state, item.lease_expires_at), ("pending", Some(State::Waiting), None));
    assert_eq!(item.wait.unwrap().signal, signal("go"));
    desk.act(Q, &id, Action::Signal { name: signal("other"), payload: json("0") }).await.unwrap();
    assert_eq!(desk.state(&id).await, State::Waiting);
    desk.act(Q, &id, Action::Signal { name: signal("go"), payload: json("{\"ok\": true}") }).await.unwrap();
    assert_eq!(desk.state(&id).await, State::Ready);

    let job = desk.claim_one(Q, "r").await;
    desk.settle(Q, &job, wait(Some(Desk::at(10)))).await.unwrap();
    desk.pass(9);
    assert!(desk.claim(Q, "r", 1).await.is_empty());
    desk.pass(1);
    let job = desk.claim_one(Q, "r").await;
    let steps = desk.store.steps(id.clone()).await.unwrap();
    assert_eq!(steps[0], ("wait:1".into(), json(r#"{"signal":"go","payload":{"ok": true}}"#)));
    assert_eq!(steps[1], ("wait:2".into(), json(r#"{"signal":"go","timedOut":true}"#)));

    // After the deadline the first of signal and claim wins.
    desk.settle(Q, &job, wait(Some(Desk::at(20)))).await.unwrap();
    desk.pass(60);
    desk.act(Q, &id, Action::Signal { name: signal("go"), payload: json("3") }).await.unwrap();
    let steps = desk.store.steps(id.clone()).await.unwrap();
    assert_eq!(steps[2].1, json(r#"{"signal":"go","payload":3}"#));
    assert_eq!(desk.claim_one(Q, "r").await.identity.id, id);
}

/// A signal before its wait is kept; each is consumed once, oldest first.
pub async fn a_signal_that_comes_first_is_kept_and_consumed_once(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    for payload in ["1", "2"] {
        desk.act(Q, &id, Action::Signal { name: signal("go"), payload: json(payload) }).await.unwrap();
    }
    let wait = Outcome::Wait { until: None, signal: Some(signal("go")) };
    for expected in [State::Ready, State::Ready, State::Waiting] {
        let job = desk.claim_one(Q, "r").await;
        assert_eq!(desk.settle(Q, &job, wait.clone()).await.unwrap().state, expected);
    }
    let steps = desk.store.steps(id.clone()).await.unwrap();
    let values: Vec<&str> = steps.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, [r#"{"signal":"go","payload":1}"#, r#"{"signal":"go","payload":2}"#]);
    desk.act(Q, &id, Action::Cancel { force: false }).await.unwrap();
    let refusal = desk.act(Q, &id, Action::Signal { name: signal("go"), payload: json("3") }).await;
    assert!(refusal.unwrap_err().is_refused());
}

/// A wait that nothing could end is refused, and the claim stays.
pub async fn a_wait_for_nothing_is_refused(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    let refusal = desk.settle(Q, &job, Outcome::Wait { until: None, signal: None }).await.unwrap_err();
    assert!(refusal.is_invalid());
    assert_eq!(desk.state(&id).await, State::Claimed);
}

/// One commit settles and claims; what the settle promotes can be claimed by it.
pub async fn exchange_settles_and_claims_in_one(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L"), new_job()]).await;
    let head = desk.claim_one(Q, "r").await;
    let wave = Wave { namespace: namespace(Q), settlements: vec![by_fence(&head, Outcome::Succeeded(None))] };
    let claim = Claim { count: 5, ..Claim::one(namespace(Q), label("r")) };
    let (answers, claimed) = desk.store.exchange(wave, claim).await.unwrap();
    assert_eq!(answers[0].as_ref().map(|answer| answer.state), Ok(State::Succeeded));
    let acta_core::store::ClaimOutcome::Claimed(claimed) = claimed.outcome else { panic!("{claimed:?}") };
    assert_eq!(ids(&claimed), jobs[1..]);
    let nowhere = || Claim { why: true, ..Claim::one(namespace("transactions/none"), label("r")) };
    let wave = Wave { namespace: namespace("transactions/none"), settlements: Vec::new() };
    let (answers, claimed) = desk.store.exchange(wave, nowhere()).await.unwrap();
    assert!(answers.is_empty());
    assert_eq!(claimed, desk.store.claim(nowhere()).await.unwrap(), "as a claim of a queue that is not there");
    let other = Wave { namespace: namespace("queues/q"), settlements: Vec::new() };
    let claim = Claim::one(namespace(Q), label("r"));
    assert!(desk.store.exchange(other, claim).await.unwrap_err().is_invalid());
}

/// A settle of what was never claimed is refused in its state, not taken for a lost lease.
pub async fn settling_what_was_never_claimed_is_refused(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    for claimant in [Claimant::fence(0), Claimant::fence(1), Claimant::robot(label("r"))] {
        let refusal = desk.settle_as(Q, &id, claimant, Outcome::Succeeded(None)).await.unwrap_err();
        assert!(refusal.is_refused(), "{refusal}");
    }
    let nobody = Claimant { fence: None, robot: None };
    assert!(desk.settle_as(Q, &id, nobody, Outcome::Succeeded(None)).await.unwrap_err().is_invalid());
}

/// Without a fence the robot must be the holder; with both, both must fit.
pub async fn the_robot_s_name_settles_where_no_fence_is_given(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "right").await;
    let wrong = Claimant::robot(label("wrong"));
    assert!(desk.settle_as(Q, &id, wrong, Outcome::Succeeded(None)).await.unwrap_err().is_lease_lost());
    let both = Claimant { fence: Some(job.standing.fence), robot: Some(label("wrong")) };
    assert!(desk.settle_as(Q, &id, both, Outcome::Succeeded(None)).await.unwrap_err().is_lease_lost());
    let right = Claimant::robot(label("right"));
    let answer = desk.settle_as(Q, &id, right, Outcome::Succeeded(None)).await.unwrap();
    assert_eq!(answer.state, State::Succeeded);
}

/// The first result of a step stays; the ledger's own names are refused; a restart forgets them.
pub async fn steps_are_kept_once(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    for value in ["1", "2"] {
        desk.report(Q, &job, News::Step { name: "charge".into(), value: json(value) }).await.unwrap();
    }
    assert_eq!(desk.store.steps(id.clone()).await, Ok(vec![("charge".into(), json("1"))]));
    for name in ["", "wait:1", &"x".repeat(201)] {
        let refusal = desk.report(Q, &job, News::Step { name: name.into(), value: json("1") }).await;
        assert!(refusal.unwrap_err().is_invalid(), "{name}");
    }
    desk.settle(Q, &job, Outcome::Cancelled).await.unwrap();
    desk.act(Q, &id, Action::Restart).await.unwrap();
    assert_eq!(desk.store.steps(id).await, Ok(Vec::new()));
}

/// `processing` in a transaction queue, `claimed` with the state beside it in a job queue.
pub async fn start_makes_a_job_running(desk: Desk) {
    for (path, status, state) in
        [(Q, "processing", None), ("queues/q", "claimed", Some(State::Running)), ("plain", "running", None)]
    {
        let id = desk.add_one(path, new_job()).await;
        let job = desk.claim_one(path, "r").await;
        desk.pass(1);
        desk.report(path, &job, News::Started).await.unwrap();
        let started = desk.item(&id).await.started_at;
        desk.pass(1);
        desk.report(path, &job, News::Started).await.unwrap();
        desk.report(path, &job, News::Progress("half".into())).await.unwrap();
        let item = desk.item(&id).await;
        assert_eq!((item.status, item.state, item.progress.as_deref()), (status, state, Some("half")), "{path}");
        assert_eq!(item.started_at, started, "a second start is no start");
        let long = desk.report(path, &job, News::Progress("x".repeat(4_097))).await;
        assert!(long.unwrap_err().is_invalid());
        desk.done(path, &job).await;
    }
}

/// The row tells its own happy path.
pub async fn a_success_at_the_first_attempt_leaves_no_history(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    desk.report(Q, &job, News::Started).await.unwrap();
    desk.heartbeat(Q, &job, 60).await.unwrap();
    desk.done(Q, &job).await;
    assert_eq!(desk.store.history(id).await, Ok(Vec::new()));
}

/// Failures with their message and the claim they ended, losses with who lost, operators' acts with who and why.
pub async fn history_tells_failures_and_losses(desk: Desk) {
    let id = desk.add_one(Q, NewJob { backoff: Some(Backoff::None), ..new_job() }).await;
    let job = desk.claim_one(Q, "one").await;
    desk.settle(Q, &job, fail(FailureKind::System)).await.unwrap();
    desk.claim_for(Q, "two", 1).await;
    desk.pass(2);
    let job = desk.claim_one(Q, "three").await;
    desk.act(Q, &id, Action::Pause).await.unwrap();
    desk.settle(Q, &job, fail(FailureKind::Business)).await.unwrap();
    let history = desk.store.history(id).await.unwrap();
    let told: Vec<(Happening, Option<u64>, Option<&str>)> = history
        .iter()
        .map(|entry| (entry.event, entry.fence, entry.actor.as_ref().map(acta_core::Label::as_str)))
        .collect();
    let expected = [
        (Happening::Retried, Some(1), Some("one")),
        (Happening::LeaseLost, Some(2), Some("two")),
        (Happening::Paused, Some(3), Some("operator")),
        (Happening::Failed, Some(3), Some("three")),
    ];
    assert_eq!(told, expected);
    assert!(history[0].exception.as_ref().unwrap().as_str().contains("boom"));
    assert_eq!(history[2].reason.as_deref(), Some("test"));
}
