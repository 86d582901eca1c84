//! Leases, heartbeats, losses, expiries.

use acta_core::explain::Reason;
use acta_core::history::Happening;
use acta_core::job::FailureKind;
use acta_core::store::{Action, Claim, Claimant, Define, Failure, NewJob, News, Outcome, QueueFilter, Why};
use acta_core::{Definition, Name, QueueSettings, Span, State};

use crate::desk::{Desk, ids, in_lane, json, label, namespace, new_job};
use crate::invariants::violations;

const Q: &str = "transactions/q";

#[expect(clippy::unnecessary_wraps, reason = "it is always given as a field that may be left out")]
fn seconds(seconds: i64) -> Option<Span> {
    Some(Span::from_millis(seconds * 1_000))
}

/// As long as the holder renews, nobody else of the lane starts.
pub async fn c009_a_lane_is_held_as_long_as_its_head_s_holder_renews(desk: Desk) {
    let jobs = desk.add(Q, vec![in_lane("L"), in_lane("L")]).await;
    let head = desk.claim_for(Q, "r", 2).await;
    for _ in 0..10 {
        desk.pass(1);
        assert_eq!(desk.heartbeat(Q, &head, 2).await, Ok(false));
        assert!(desk.claim(Q, "s", 5).await.is_empty());
    }
    desk.done(Q, &head).await;
    assert_eq!(ids(&desk.claim(Q, "s", 5).await), jobs[1..]);
}

/// Whatever a holder says under an old fence is refused as lease lost and changes nothing.
pub async fn c013_a_zombie_changes_nothing(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let zombie = desk.claim_for(Q, "zombie", 2).await;
    desk.pass(5);
    let second = desk.claim_one(Q, "second").await;
    assert_eq!((second.identity.id.clone(), second.standing.fence), (id.clone(), 2));
    for when in ["while the second holds it", "after the second is done"] {
        let before = (desk.found(&id).await, desk.store.steps(id.clone()).await.unwrap());
        let outcomes = [
            Outcome::Succeeded(None),
            Outcome::Succeeded(Some(json("1"))),
            Outcome::Failed(Failure::new(FailureKind::System, "late")),
            Outcome::Snooze(Desk::at(100)),
            Outcome::Wait { until: Some(Desk::at(100)), signal: None },
            Outcome::Release,
            Outcome::Cancelled,
        ];
        for outcome in outcomes {
            let answer = desk.settle(Q, &zombie, outcome.clone()).await;
            assert!(answer.unwrap_err().is_lease_lost(), "{outcome:?} {when}");
        }
        assert!(desk.heartbeat(Q, &zombie, 60).await.unwrap_err().is_lease_lost(), "heartbeat {when}");
        let step = News::Step { name: "s".into(), value: json("1") };
        for news in [News::Started, News::Progress("late".into()), step] {
            assert!(desk.report(Q, &zombie, news.clone()).await.unwrap_err().is_lease_lost(), "{news:?} {when}");
        }
        let by_name = desk.settle_as(Q, &id, Claimant::robot(label("zombie")), Outcome::Release).await;
        assert!(by_name.unwrap_err().is_lease_lost(), "by name {when}");
        assert_eq!((desk.found(&id).await, desk.store.steps(id.clone()).await.unwrap()), before, "{when}");
        if when.starts_with("while") {
            desk.settle(Q, &second, Outcome::Succeeded(Some(json("2")))).await.unwrap();
        }
    }
    assert_eq!(desk.item(&id).await.output, Some(json("2")));
}

/// Expiry changes no row: until the next claim or recover the holder may go on, and its fence stays.
pub async fn c014_a_lapsed_lease_is_its_holder_s_until_somebody_takes_over(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_for(Q, "r", 1).await;
    desk.pass(60);
    assert_eq!(desk.state(&id).await, State::Claimed);
    assert_eq!(desk.heartbeat(Q, &job, 1).await, Ok(false));
    assert!(desk.claim(Q, "s", 1).await.is_empty(), "renewed late, but in time");
    desk.pass(60);
    let taken = desk.claim_one(Q, "s").await;
    assert_eq!(taken.standing.fence, 2);
    assert!(desk.heartbeat(Q, &job, 1).await.unwrap_err().is_lease_lost());
    desk.pass(600);
    desk.done(Q, &taken).await;
}

/// A delayed or waiting job is nobody's: it is handed out once, when its time has come.
pub async fn c022_what_is_delayed_or_waits_holds_no_lease(desk: Desk) {
    let delayed = NewJob { run_at: Some(Desk::at(15)), lease: seconds(2), ..new_job() };
    let id = desk.add_one(Q, delayed).await;
    for _ in 0..14 {
        desk.pass(1);
        assert!(desk.claim(Q, "r", 3).await.is_empty());
    }
    desk.pass(1);
    let job = desk.claim_one(Q, "r").await;
    desk.settle(Q, &job, Outcome::Snooze(Desk::at(30))).await.unwrap();
    assert_eq!(desk.item(&id).await.lease_expires_at, None);
    for _ in 0..14 {
        desk.pass(1);
        assert!(desk.claim(Q, "r", 3).await.is_empty());
    }
    desk.pass(1);
    assert_eq!(desk.claim_one(Q, "r").await.standing.fence, 2);
}

/// An input that kills its robot can't do so for ever, and good jobs get through meanwhile.
pub async fn c024_c026_a_job_that_kills_its_robots_ends_after_six_losses(desk: Desk) {
    let killers = desk.add(Q, (0..3).map(|_| NewJob { max_attempts: Some(1), ..new_job() }).collect()).await;
    let good = desk.add(Q, (0..10).map(|_| new_job()).collect()).await;
    let mut done = Vec::new();
    for _ in 0..20 {
        for job in desk.claim_with(Claim { count: 4, lease: seconds(1), ..Claim::one(namespace(Q), label("r")) }).await
        {
            if !killers.contains(&job.identity.id) {
                desk.done(Q, &job).await;
                done.push(job.identity.id);
            }
        }
        desk.pass(2);
    }
    assert_eq!(done, good);
    for id in &killers {
        let item = desk.item(id).await;
        assert_eq!((item.status, item.fence, item.lost_leases), ("system-exception", Some(6), Some(6)));
        assert_eq!(item.exception.unwrap().code.as_deref(), Some("lease-lost"));
    }
}

/// No enqueue, no restart: the next claim takes over what lapsed, and the reason for nothing names the instant.
pub async fn c028_a_lapsed_lease_needs_no_event_but_the_next_claim(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    desk.claim_for(Q, "gone", 10).await;
    let nothing = desk.why(Q).await;
    assert_eq!((nothing.why, nothing.next_at), (Why::Leased, Some(Desk::at(10))));
    desk.pass(9);
    assert!(desk.claim(Q, "r", 1).await.is_empty());
    desk.pass(1);
    let again = desk.claim_for(Q, "r", 10).await;
    assert_eq!(again.identity.id, id);
    // One that said that it started is lost like any other.
    desk.report(Q, &again, News::Started).await.unwrap();
    desk.pass(10);
    assert_eq!(desk.claim_one(Q, "s").await.identity.id, id);
}

/// A short lease lapses soon, a long one late, whatever the queue says.
pub async fn c035_each_job_has_the_lease_it_asks_for(desk: Desk) {
    let with = |lease| NewJob { lease: seconds(lease), ..new_job() };
    let jobs = desk.add(Q, vec![with(2), with(60)]).await;
    assert_eq!(desk.claim(Q, "r", 2).await.len(), 2);
    desk.pass(3);
    assert_eq!(ids(&desk.claim(Q, "s", 2).await), jobs[..1]);
    desk.pass(30);
    assert_eq!(ids(&desk.claim(Q, "s", 2).await), jobs[..1]);
}

/// A lost job is never nowhere.
pub async fn c045_a_lost_job_is_in_one_state_at_all_times(desk: Desk) {
    desk.add(Q, (0..5).map(|_| new_job()).collect()).await;
    let count = async || {
        let queues = desk.store.queues(QueueFilter::default()).await.unwrap().queues;
        queues[0].1.values().sum::<u64>()
    };
    for _ in 0..8 {
        desk.claim_for(Q, "gone", 1).await;
        assert_eq!(count().await, 5);
        desk.pass(2);
        assert_eq!(count().await, 5);
        assert_eq!(violations(desk.store.as_ref()).await.unwrap(), Vec::<String>::new());
    }
}

/// The claim's own, the job's, the definition's, the queue's, the family's; in this order.
pub async fn a_lease_comes_from_the_claim_the_job_the_definition_the_queue_the_family(desk: Desk) {
    let name = Name::new("name", "report").unwrap();
    let lease_of = async |desk: &Desk, job: NewJob, asked: Option<Span>| {
        let id = desk.add_one("plain", job).await;
        let claim = Claim { lease: asked, ..Claim::one(namespace("plain"), label("r")) };
        let job = desk.claim_with(claim).await.remove(0);
        assert_eq!(job.identity.id, id);
        desk.done("plain", &job).await;
        job.standing.lease_expires_at.unwrap().since_ms(Desk::at(0)) / 1_000
    };
    let named = NewJob { name: Some(name.clone()), ..new_job() };
    assert_eq!(lease_of(&desk, named.clone(), None).await, 180, "the family's");
    let settings = QueueSettings { lease: seconds(40), ..QueueSettings::default() };
    desk.store.define(Define::Queue(namespace("plain"), settings)).await.unwrap();
    assert_eq!(lease_of(&desk, named.clone(), None).await, 40, "the queue's");
    let definition = Definition { lease: seconds(30), ..Definition::new(name) };
    desk.store.define(Define::Job(definition)).await.unwrap();
    assert_eq!(lease_of(&desk, named.clone(), None).await, 30, "the definition's");
    let own = NewJob { lease: seconds(20), ..named };
    assert_eq!(lease_of(&desk, own.clone(), None).await, 20, "the job's");
    assert_eq!(lease_of(&desk, own, seconds(10)).await, 10, "the claim's");
    for (path, expected) in [("queues/q", 600), ("transactions/q", 300)] {
        desk.add_one(path, new_job()).await;
        let job = desk.claim_one(path, "r").await;
        assert_eq!(job.standing.lease_expires_at, Some(Desk::at(expected)), "{path}");
    }
}

/// A heartbeat extends, never shortens, and brings the word of a cancel.
pub async fn a_heartbeat_never_shortens_and_tells_a_cancel(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_for(Q, "r", 100).await;
    assert_eq!(desk.heartbeat(Q, &job, 5).await, Ok(false));
    assert_eq!(desk.item(&id).await.lease_expires_at, Some(Desk::at(100)));
    desk.act(Q, &id, Action::Cancel { force: false }).await.unwrap();
    assert_eq!(desk.heartbeat(Q, &job, 200).await, Ok(true));
    assert_eq!(desk.item(&id).await.lease_expires_at, Some(Desk::at(200)));
}

/// Recover puts lapsed jobs back; the claim that follows does not count the loss again.
pub async fn recover_does_what_a_claim_does_but_claims_nothing(desk: Desk) {
    let lapsed = desk.add_one(Q, new_job()).await;
    let job = desk.claim_for(Q, "r", 1).await;
    let due = desk.add_one(Q, NewJob { run_at: Some(Desk::at(2)), ..new_job() }).await;
    desk.pass(2);
    assert_eq!(desk.store.recover(namespace(Q)).await, Ok(2));
    assert_eq!(desk.store.recover(namespace(Q)).await, Ok(0));
    assert_eq!((desk.state(&lapsed).await, desk.state(&due).await), (State::Ready, State::Ready));
    let item = desk.item(&lapsed).await;
    assert_eq!((item.lost_leases, item.attempts, item.fence), (Some(1), 1, Some(1)));
    assert!(desk.heartbeat(Q, &job, 1).await.unwrap_err().is_lease_lost(), "recover has taken it");
    let again = desk.claim(Q, "s", 5).await;
    assert_eq!(ids(&again), vec![lapsed, due]);
    assert_eq!((again[0].standing.lost_leases, again[0].standing.attempts), (1, 2));
}

/// Losses count in a row; an accepted settle begins anew.
pub async fn a_settle_forgets_losses(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    for _ in 0..3 {
        desk.claim_for(Q, "gone", 1).await;
        desk.pass(2);
    }
    let job = desk.claim_one(Q, "r").await;
    assert_eq!(job.standing.lost_leases, 3);
    desk.settle(Q, &job, Outcome::Release).await.unwrap();
    assert_eq!(desk.item(&id).await.lost_leases, None);
}

/// What was never claimed and has expired fails, in any live state, and lets its lane go on.
pub async fn expiry_ends_what_was_never_claimed(desk: Desk) {
    let expiring = |lane: Option<&str>| NewJob { expires_at: Some(Desk::at(10)), lane: lane.map(label), ..new_job() };
    let late = NewJob { run_at: Some(Desk::at(60)), ..expiring(None) };
    let jobs = vec![expiring(None), expiring(None), expiring(Some("L")), expiring(Some("L")), in_lane("L"), late];
    let jobs = desk.add(Q, jobs).await;
    let claimed = desk.claim_for(Q, "r", 100).await;
    assert_eq!(claimed.identity.id, jobs[0]);
    desk.act(Q, &jobs[1], Action::Pause).await.unwrap();
    desk.pass(10);
    let rest = desk.claim(Q, "r", 10).await;
    assert_eq!(ids(&rest), vec![jobs[4].clone()], "the lane goes on behind its expired members");
    for index in [1, 2, 3, 5] {
        let item = desk.item(&jobs[index]).await;
        assert_eq!(item.exception.unwrap().code.as_deref(), Some("expired"), "{index}");
        assert_eq!(item.status, "system-exception", "{index}");
    }
    desk.done(Q, &claimed).await;
    let history = desk.store.history(jobs[2].clone()).await.unwrap();
    assert_eq!(history[0].event, Happening::Expired);
}

/// What has expired is not handed out, even where the cap keeps a claim from ending it.
pub async fn an_expired_job_is_never_handed_out(desk: Desk) {
    let expiring = NewJob { expires_at: Some(Desk::at(1)), ..new_job() };
    let mut jobs = vec![expiring; 1_005];
    jobs.push(new_job());
    let jobs = desk.add(Q, jobs).await;
    desk.pass(10);
    assert_eq!(desk.store.explain(jobs[0].clone()).await.unwrap().reason, Reason::Expired);
    assert_eq!(ids(&desk.claim(Q, "r", 10).await), jobs[1_005..]);
    assert_eq!(desk.store.recover(namespace(Q)).await, Ok(5));
}

/// The cap is part of the rule: by instant, then place, and what an end promotes counts in the same claim.
pub async fn a_claim_brings_in_at_most_a_thousand_due_jobs(desk: Desk) {
    let due = |seconds| NewJob { run_at: Some(Desk::at(seconds)), ..new_job() };
    let mut jobs: Vec<NewJob> = (0..1_005).map(|_| due(20)).collect();
    jobs.push(due(10));
    let jobs = desk.add(Q, jobs).await;
    desk.pass(30);
    assert_eq!(desk.store.recover(namespace(Q)).await, Ok(1_000));
    assert_eq!(desk.state(&jobs[1_005]).await, State::Ready, "the earliest instant first");
    assert_eq!(desk.state(&jobs[998]).await, State::Ready, "then by place");
    assert_eq!(desk.state(&jobs[999]).await, State::Scheduled);
    assert_eq!(desk.store.recover(namespace(Q)).await, Ok(6));
}
