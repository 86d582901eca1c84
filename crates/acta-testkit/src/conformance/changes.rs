//! Word of changes to whoever waits for work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use acta_core::job::FailureKind;
use acta_core::store::{Action, Failure, Hold, NewJob, Outcome};
use acta_core::{Name, Namespace, Store};

use crate::desk::{Desk, block_on, in_lane, json, namespace, new_job};

const Q: &str = "transactions/q";
/// Nothing in these tests takes longer; whoever is not told by then is not told at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// Somebody who waits in a thread of its own.
struct Waiter {
    is_told: Arc<(Mutex<bool>, Condvar)>,
    has_asked: Arc<AtomicBool>,
}

impl Waiter {
    /// Waits for another number than the present one.
    async fn begin(store: &Arc<dyn Store>, place: Namespace) -> Self {
        let seen = store.changed(place.clone(), None).await.unwrap();
        Self::begin_after(store, place, seen)
    }

    /// Waits for another number than the one seen.
    fn begin_after(store: &Arc<dyn Store>, place: Namespace, seen: u64) -> Self {
        let is_told = Arc::new((Mutex::new(false), Condvar::new()));
        let has_asked = Arc::new(AtomicBool::new(false));
        let (store, told, asked) = (Arc::clone(store), Arc::clone(&is_told), Arc::clone(&has_asked));
        std::thread::spawn(move || {
            let number = block_on(async {
                asked.store(true, Ordering::SeqCst);
                store.changed(place, Some(seen)).await
            });
            assert_ne!(number.unwrap(), seen, "another number");
            *told.0.lock().unwrap() = true;
            told.1.notify_all();
        });
        Self { is_told, has_asked }
    }

    /// Fails the test if it is not told.
    fn must_be_told(self, why: &str) {
        let (told, bell) = &*self.is_told;
        let (told, _) = bell.wait_timeout_while(told.lock().unwrap(), PATIENCE, |told| !*told).unwrap();
        assert!(*told, "{why} wakes");
        assert!(self.has_asked.load(Ordering::SeqCst));
    }
}

/// Who waits is told of a job that a claim would find, and of one that it will find later.
pub async fn a_job_that_can_be_claimed_wakes_whoever_waits(desk: Desk) {
    let waiter = Waiter::begin(&desk.store, namespace(Q)).await;
    desk.add_one(Q, new_job()).await;
    waiter.must_be_told("the first job of a namespace");
    let waiter = Waiter::begin(&desk.store, namespace(Q)).await;
    desk.add_one(Q, NewJob { run_at: Some(Desk::at(60)), ..new_job() }).await;
    waiter.must_be_told("a job that is for later");
}

/// The end of a head is the beginning of the next.
pub async fn a_settle_that_promotes_the_lane_s_next_wakes(desk: Desk) {
    desk.add(Q, vec![in_lane("L"), in_lane("L")]).await;
    let head = desk.claim_one(Q, "r").await;
    let waiter = Waiter::begin(&desk.store, namespace(Q)).await;
    desk.done(Q, &head).await;
    waiter.must_be_told("a promotion");
}

/// What changes between a look and the wait is not missed.
pub async fn whoever_saw_an_old_number_is_answered_at_once(desk: Desk) {
    let old = desk.store.changed(namespace(Q), None).await.unwrap();
    desk.add_one(Q, new_job()).await;
    Waiter::begin_after(&desk.store, namespace(Q), old).must_be_told("what happened before the wait");
}

/// Whatever makes a candidate tells.
pub async fn a_retry_a_resume_and_a_signal_wake(desk: Desk) {
    let id = desk.add_one(Q, new_job()).await;
    let job = desk.claim_one(Q, "r").await;
    let waiter = Waiter::begin(&desk.store, namespace(Q)).await;
    desk.settle(Q, &job, Outcome::Failed(Failure::new(FailureKind::System, "no"))).await.unwrap();
    waiter.must_be_told("a retry");
    desk.pass(60);
    let job = desk.claim_one(Q, "r").await;
    let go = Name::new("signal", "go").unwrap();
    desk.settle(Q, &job, Outcome::Wait { until: None, signal: Some(go.clone()) }).await.unwrap();
    let waiter = Waiter::begin(&desk.store, namespace(Q)).await;
    desk.act(Q, &id, Action::Signal { name: go, payload: json("1") }).await.unwrap();
    waiter.must_be_told("a signal");
    let hold = |paused| Hold { namespace: namespace(Q), lane: None, paused, actor: None, reason: None };
    desk.store.hold(hold(true)).await.unwrap();
    let waiter = Waiter::begin(&desk.store, namespace(Q)).await;
    desk.store.hold(hold(false)).await.unwrap();
    waiter.must_be_told("a resume");
}

/// A claim that finds nothing changes nothing: workers that wait do not wake each other.
pub async fn nothing_new_wakes_nobody(desk: Desk) {
    desk.add_one("transactions/other", new_job()).await;
    desk.add_one(Q, new_job()).await;
    let before = desk.store.changed(namespace(Q), None).await.unwrap();
    desk.claim_one(Q, "r").await;
    assert!(desk.claim(Q, "s", 1).await.is_empty());
    desk.add_one("transactions/other", new_job()).await;
    assert_eq!(desk.store.changed(namespace(Q), None).await, Ok(before));
}
