//! What comes from an outbox.

use acta_core::State;
use acta_core::store::{Deliver, Delivered, Deliveries, NewJob};
use acta_core::{Error, Label, Name};

use crate::desk::{Desk, json, label, namespace, new_job, with_key};

const Q: &str = "transactions/q";
const DAY: i64 = 86_400;

async fn try_deliver(desk: &Desk, deliveries: Deliveries) -> Result<Vec<Delivered>, Error> {
    desk.store.deliver(Deliver { namespace: namespace(Q), deliveries }).await
}

async fn arrive(desk: &Desk, arrivals: Vec<(&str, NewJob)>) -> Vec<Delivered> {
    let arrivals = arrivals.into_iter().map(|(key, job)| (label(key), job)).collect();
    try_deliver(desk, Deliveries::Arrive(arrivals)).await.unwrap()
}

async fn one(desk: &Desk, key: &str) -> Delivered {
    arrive(desk, vec![(key, new_job())]).await.remove(0)
}

fn keys(keys: &[&str]) -> Vec<Label> {
    keys.iter().map(|key| label(key)).collect()
}

/// The same delivery again, in another call or in the same, changes nothing, whatever became of its job.
pub async fn c109_a_delivery_arrives_once(desk: Desk) {
    let Delivered::Now { id, created: true, state: State::Ready } = one(&desk, "d").await else { panic!() };
    assert_eq!(one(&desk, "d").await, Delivered::Before(id.clone()));
    let claimed = desk.claim_one(Q, "r").await;
    desk.done(Q, &claimed).await;
    assert_eq!(one(&desk, "d").await, Delivered::Before(id.clone()));
    desk.pass(40 * DAY);
    desk.store.prune(namespace(Q), 10).await.unwrap();
    assert!(desk.store.job(id.clone()).await.is_err(), "it is pruned");
    assert_eq!(one(&desk, "d").await, Delivered::Before(id), "its delivery is known all the same");
    let twice = arrive(&desk, vec![("e", new_job()), ("e", new_job()), ("f", new_job())]).await;
    let Delivered::Now { id, .. } = &twice[0] else { panic!("{twice:?}") };
    assert_eq!(twice[1], Delivered::Before(id.clone()));
    assert_eq!(desk.all(Q).await.len(), 2);
}

/// Ninety days after it arrived.
pub async fn a_delivery_is_known_as_long_as_a_tombstone_lives(desk: Desk) {
    one(&desk, "d").await;
    desk.pass(90 * DAY - 1);
    desk.store.prune(namespace(Q), 10).await.unwrap();
    assert!(matches!(one(&desk, "d").await, Delivered::Before(_)));
    desk.pass(1);
    assert!(matches!(one(&desk, "d").await, Delivered::Now { created: true, .. }));
}

/// The application's own key is another thing.
pub async fn a_delivery_s_job_may_have_a_key_of_its_own(desk: Desk) {
    let held = desk.add_one(Q, with_key("k")).await;
    let answers = arrive(&desk, vec![("d", with_key("k")), ("e", with_key("other"))]).await;
    assert_eq!(answers[0], Delivered::Now { id: held.clone(), created: false, state: State::Ready });
    assert!(matches!(answers[1], Delivered::Now { created: true, .. }));
    assert_eq!(one(&desk, "d").await, Delivered::Before(held));
    assert_eq!(desk.all(Q).await.len(), 2);
}

/// Closed, nothing arrives; reopened, it does. What has arrived can be neither.
pub async fn a_closed_delivery_does_not_arrive(desk: Desk) {
    let Delivered::Now { id, .. } = one(&desk, "there").await else { panic!() };
    let closed = try_deliver(&desk, Deliveries::Close(keys(&["there", "d", "d"]))).await.unwrap();
    assert_eq!(closed, [Delivered::Before(id.clone()), Delivered::Closed, Delivered::Closed]);
    assert_eq!(one(&desk, "d").await, Delivered::Closed);
    let mixed = arrive(&desk, vec![("d", new_job()), ("e", new_job())]).await;
    assert_eq!(mixed[0], Delivered::Closed);
    assert!(matches!(mixed[1], Delivered::Now { created: true, .. }));
    assert_eq!(desk.all(Q).await.len(), 2);
    let opened = try_deliver(&desk, Deliveries::Reopen(keys(&["there", "d", "new"]))).await.unwrap();
    assert_eq!(opened, [Delivered::Before(id), Delivered::Open, Delivered::Open]);
    assert!(matches!(one(&desk, "d").await, Delivered::Now { created: true, .. }));
    assert!(matches!(one(&desk, "new").await, Delivered::Now { created: true, .. }));
}

/// A refused one is named by its place in the call, and none of the call has arrived.
pub async fn a_refused_delivery_is_named_and_leaves_nothing(desk: Desk) {
    one(&desk, "before").await;
    let bad = NewJob { priority: Some(3), ..new_job() };
    let arrivals = vec![("before", new_job()), ("a", new_job()), ("b", bad), ("c", new_job())];
    let arrivals = arrivals.into_iter().map(|(key, job)| (label(key), job)).collect();
    let fault = try_deliver(&desk, Deliveries::Arrive(arrivals)).await.unwrap_err();
    assert!(matches!(fault, Error::At { index: 2, .. }), "{fault:?}");
    assert_eq!(desk.all(Q).await.len(), 1);
    assert!(matches!(one(&desk, "a").await, Delivered::Now { created: true, .. }));
    let differs = NewJob { name: Some(Name::new("name", "Mail").unwrap()), ..new_job() };
    desk.add_one(Q, differs).await;
    let differs = NewJob { name: Some(Name::new("name", "mail").unwrap()), ..new_job() };
    let fault = try_deliver(&desk, Deliveries::Arrive(vec![(label("x"), new_job()), (label("y"), differs)])).await;
    assert!(matches!(fault.unwrap_err(), Error::At { index: 1, .. }));
}

/// Jobs of one lane stand in it as they are given.
pub async fn c104_deliveries_keep_the_order_of_their_call(desk: Desk) {
    let in_lane = |number: u32| NewJob { payload: json(&number.to_string()), lane: Some(label("A")), ..new_job() };
    arrive(&desk, vec![("1", in_lane(1)), ("2", in_lane(2))]).await;
    arrive(&desk, vec![("2", in_lane(2)), ("3", in_lane(3)), ("4", in_lane(4))]).await;
    for number in 1..=4 {
        let claimed = desk.claim_one(Q, "r").await;
        assert_eq!(claimed.identity.payload, json(&number.to_string()));
        desk.done(Q, &claimed).await;
    }
}
