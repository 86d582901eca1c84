//! Deduplication keys.

use acta_core::job::FailureKind;
use acta_core::store::{Action, Dedup, Failure, NewJob, Outcome};
use acta_core::{Name, State};

use crate::desk::{Desk, json, label, namespace, new_job, with_key};

const Q: &str = "transactions/q";
const DAY: i64 = 86_400;

/// No error, no second job: the holder's id and state, and whether the payload is another.
pub async fn c053_c130_a_duplicate_is_told_the_holder_and_whether_the_payload_differs(desk: Desk) {
    let first = desk.try_add(Q, vec![with_key("k")]).await.unwrap().remove(0);
    assert!(first.created);
    let same = desk.try_add(Q, vec![with_key("k")]).await.unwrap().remove(0);
    assert_eq!((same.id.clone(), same.created, same.payload_differs), (first.id.clone(), false, false));
    let other = NewJob { payload: json("{ }"), ..with_key("k") };
    let other = desk.try_add(Q, vec![other]).await.unwrap().remove(0);
    assert_eq!((other.id, other.created, other.payload_differs), (first.id.clone(), false, true));
    desk.claim_one(Q, "r").await;
    let held = desk.try_add(Q, vec![with_key("k")]).await.unwrap().remove(0);
    assert_eq!((held.id, held.state), (first.id.clone(), State::Claimed));
    assert_eq!(desk.all(Q).await.len(), 1);
    assert_eq!(desk.store.key_holder(namespace(Q), label("k")).await, Ok(Some(first.id)));
    assert_eq!(desk.store.key_holder(namespace(Q), label("other")).await, Ok(None));
}

/// Within a batch and against what is there, in the order of the batch.
pub async fn c054_a_batch_is_like_single_calls(desk: Desk) {
    let before = desk.add_one(Q, with_key("b")).await;
    let keys = ["a", "b", "a", "c"];
    let mut jobs: Vec<NewJob> = keys.iter().map(|key| with_key(key)).collect();
    jobs.push(new_job());
    let added = desk.try_add(Q, jobs).await.unwrap();
    let created: Vec<bool> = added.iter().map(|added| added.created).collect();
    assert_eq!(created, [true, false, false, true, true]);
    assert_eq!((&added[1].id, &added[2].id), (&before, &added[0].id));
    assert_eq!(desk.all(Q).await.len(), 4);
}

/// A job that was not made leaves nothing behind, nor the spelling of its name.
pub async fn a_duplicate_s_name_stays_unknown(desk: Desk) {
    let named = |name: &str| Some(Name::new("name", name).unwrap());
    desk.add_one(Q, with_key("k")).await;
    let jobs =
        vec![NewJob { name: named("report"), ..with_key("k") }, NewJob { name: named("other"), ..with_key("k") }];
    assert!(desk.try_add(Q, jobs).await.unwrap().iter().all(|added| !added.created));
    desk.add_one(Q, NewJob { name: named("Report"), ..new_job() }).await;
    let refused = desk.try_add(Q, vec![NewJob { name: named("report"), ..with_key("k") }]).await.unwrap_err();
    assert_eq!(refused.hint().as_deref(), Some("write \"Report\""));
}

/// A key holds as long as its job or its tombstone: 90 days after the end, however the job ended.
pub async fn c055_a_key_lives_as_long_as_is_written_down(desk: Desk) {
    let ends = ["done", "failed", "cancelled", "expired"];
    for key in ends {
        let job =
            if key == "expired" { NewJob { expires_at: Some(Desk::at(1)), ..with_key(key) } } else { with_key(key) };
        let path = format!("transactions/{key}");
        let id = desk.add_one(&path, job).await;
        match key {
            "done" => {
                let job = desk.claim_one(&path, "r").await;
                desk.done(&path, &job).await;
            }
            "failed" => {
                let job = desk.claim_one(&path, "r").await;
                let failure = Failure::new(FailureKind::Business, "no");
                desk.settle(&path, &job, Outcome::Failed(failure)).await.unwrap();
            }
            "cancelled" => {
                desk.act(&path, &id, Action::Cancel { force: false }).await.unwrap();
            }
            _ => {}
        }
    }
    desk.pass(1);
    desk.store.recover(namespace("transactions/expired")).await.unwrap();
    let add = async |key: &str| {
        let path = format!("transactions/{key}");
        desk.try_add(&path, vec![with_key(key)]).await.unwrap().remove(0)
    };
    let states = [State::Succeeded, State::Failed, State::Cancelled, State::Failed];
    for (key, state) in ends.into_iter().zip(states) {
        let told = add(key).await;
        assert_eq!((told.created, told.state), (false, state), "finished: {key}");
    }
    desk.pass(31 * DAY);
    for (key, state) in ends.into_iter().zip(states) {
        let path = namespace(&format!("transactions/{key}"));
        assert_eq!(desk.store.prune(path, 10).await, Ok((1, 0)));
        let told = add(key).await;
        assert_eq!((told.created, told.state), (false, state), "pruned: {key}");
    }
    desk.pass(60 * DAY);
    for key in ends {
        assert!(add(key).await.created, "the tombstone is over: {key}");
    }
    let path = namespace("transactions/other");
    let id = desk.add_one("transactions/other", with_key("k")).await;
    desk.act("transactions/other", &id, Action::Cancel { force: false }).await.unwrap();
    desk.pass(31 * DAY);
    assert_eq!(desk.store.prune(path.clone(), 10).await, Ok((1, 0)));
    desk.pass(60 * DAY);
    assert_eq!(desk.store.prune(path, 10).await, Ok((0, 1)), "expired tombstones are pruned");
}

/// Where the enqueue says so, the end frees the key.
pub async fn a_key_held_while_live_is_free_after_the_end(desk: Desk) {
    let while_live = || NewJob { dedup: Some(Dedup { key: label("k"), while_live: true }), ..new_job() };
    let first = desk.try_add(Q, vec![while_live()]).await.unwrap().remove(0);
    assert!(!desk.try_add(Q, vec![while_live()]).await.unwrap()[0].created);
    let job = desk.claim_one(Q, "r").await;
    assert!(!desk.try_add(Q, vec![while_live()]).await.unwrap()[0].created);
    desk.done(Q, &job).await;
    let second = desk.try_add(Q, vec![while_live()]).await.unwrap().remove(0);
    assert!(second.created && second.id != first.id);
    desk.act(Q, &second.id, Action::Cancel { force: false }).await.unwrap();
    let third = desk.try_add(Q, vec![with_key("k")]).await.unwrap().remove(0);
    assert!(third.created);
}

/// The namespace bounds a key.
pub async fn keys_of_two_namespaces_are_two_keys(desk: Desk) {
    for path in [Q, "queues/q", "plain"] {
        assert!(desk.try_add(path, vec![with_key("k")]).await.unwrap()[0].created, "{path}");
    }
}
