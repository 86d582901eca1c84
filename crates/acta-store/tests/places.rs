//! Where a claim left its rows is only a hint: a settle that has an old one, or none, comes to the same.

mod common;

use std::sync::Arc;

use acta_core::store::{
    Action, Claim, ClaimOutcome, Claimant, Enqueue, Heartbeats, NewJob, Operation, Outcome, SettleAnswer, Settlement,
    Wave,
};
use acta_core::{Error, Job, Namespace, Span, State, Store};
use acta_store::{PostgresStore, postgres};
use acta_testkit::block_on;
use acta_testkit::desk::{json, label};
use acta_testkit::invariants::violations;
use acta_testkit::postgres::{Database, Server, sql};

fn queue() -> Namespace {
    "places".parse().unwrap()
}

/// A process that works on the ledger: what it knows of places, no other one knows.
fn open(database: &Database) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::new(&database.url().parse().unwrap(), postgres::Options::default()).unwrap())
}

async fn add(store: &PostgresStore, jobs: Vec<NewJob>) {
    store.enqueue(Enqueue { namespace: queue(), jobs }).await.unwrap();
}

fn plain(count: usize) -> Vec<NewJob> {
    (0..count).map(|_| NewJob::new(json("1"))).collect()
}

async fn claim(store: &PostgresStore, count: usize, lease: Option<i64>) -> Vec<Job> {
    let claim = Claim { count, lease: lease.map(Span::from_millis), ..Claim::one(queue(), label("robot")) };
    let ClaimOutcome::Claimed(jobs) = store.claim(claim).await.unwrap().outcome else { return Vec::new() };
    jobs
}

async fn settle(store: &PostgresStore, jobs: &[Job]) -> Vec<Result<SettleAnswer, Error>> {
    let settlements = jobs.iter().map(|job| Settlement {
        id: job.identity.id.clone(),
        claimant: Claimant::fence(job.standing.fence),
        outcome: Outcome::Succeeded(None),
    });
    store.settle(Wave { namespace: queue(), settlements: settlements.collect() }).await.unwrap()
}

fn all_succeeded(answers: &[Result<SettleAnswer, Error>]) -> bool {
    answers.iter().all(|answer| matches!(answer, Ok(answer) if answer.state == State::Succeeded))
}

#[test]
fn a_row_that_has_moved_since_its_claim_is_settled_all_the_same() {
    let database = Database::new(Server::shared_url(), Some(common::template()));
    block_on(async {
        let (ours, theirs) = (open(&database), open(&database));
        let laned = (0..6).map(|number| NewJob { lane: Some(label(["A", "B"][number % 2])), ..NewJob::new(json("1")) });
        add(&ours, plain(10).into_iter().chain(laned).collect()).await;
        let jobs = claim(&ours, 100, None).await;
        assert_eq!(jobs.len(), 12, "ten, and the head of each lane");
        // Somebody else extends the leases of some, under the same claim, and asks another one to stop.
        let beats =
            jobs[..4].iter().map(|job| (job.identity.id.clone(), Claimant::fence(job.standing.fence))).collect();
        let lease = Some(Span::from_millis(3_600_000));
        let beaten = theirs.heartbeat(Heartbeats { namespace: queue(), beats, lease, worker: None }).await.unwrap();
        assert!(beaten.iter().all(Result::is_ok));
        let ids = vec![jobs[5].identity.id.clone()];
        let cancel =
            Operation { namespace: queue(), ids, action: Action::Cancel { force: false }, actor: None, reason: None };
        assert!(theirs.operate(cancel).await.unwrap().iter().all(Result::is_ok));
        assert!(all_succeeded(&settle(&ours, &jobs).await));
        // Once more: the same answers, from a process that knows the places no more, and from one that never did.
        assert!(all_succeeded(&settle(&ours, &jobs).await));
        assert!(all_succeeded(&settle(&theirs, &jobs).await));
        // The lanes have gone on, and all rows stand elsewhere when their holder is back.
        let next = claim(&ours, 100, None).await;
        assert_eq!(next.len(), 2);
        sql(&database.url(), "VACUUM FULL acta.standing").unwrap();
        assert!(all_succeeded(&settle(&ours, &next).await));
        assert_eq!(claim(&ours, 100, None).await.len(), 2);
        assert_eq!(violations(&*ours).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn who_has_lost_its_lease_settles_nothing_by_the_place_that_it_remembers() {
    let database = Database::new(Server::shared_url(), Some(common::template()));
    block_on(async {
        let (ours, theirs) = (open(&database), open(&database));
        add(&ours, plain(20)).await;
        let lapsed = claim(&ours, 20, Some(1)).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let again = claim(&theirs, 20, None).await;
        assert_eq!(again.len(), 20);
        let refused = settle(&ours, &lapsed).await;
        assert!(refused.iter().all(|answer| matches!(answer, Err(Error::LeaseLost { .. }))), "{refused:?}");
        assert!(all_succeeded(&settle(&theirs, &again).await));
        assert_eq!(violations(&*ours).await.unwrap(), Vec::<String>::new());
    });
}
