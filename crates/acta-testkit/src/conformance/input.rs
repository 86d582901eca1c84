//! What comes in: kept literally, or refused with its place.

use acta_core::store::{Define, JobFilter, NewJob, QueueFilter};
use acta_core::{Backoff, Definition, Item, Json, Label, Name, Namespace, Span, State};

use crate::desk::{Desk, json, label, namespace, new_job, with_key};

const Q: &str = "queues/q";

/// Numbers, duplicates, escapes, white space: what was put in comes out.
pub async fn c062_c065_payloads_keep_every_byte(desk: Desk) {
    let deep = format!("{}{}", "[".repeat(Json::MOST_DEPTH), "]".repeat(Json::MOST_DEPTH));
    let large = format!("\"{}\"", "x".repeat(Json::MOST_BYTES - 2));
    for text in [
        "9223372036854775808",
        "1e400",
        r#"{"a":1,"a":2}"#,
        r#""\u0000""#,
        r#"{"\u0000":["\u0000"]}"#,
        r#""\ud800""#,
        "{ \"z\" :\t1 ,\r\n \"a\":[ ] }",
        r#"{"id":9007199254740993,"m":-9223372036854775808,"d":0.1,"e":1e2,"z":1.0}"#,
        "\"名前 \u{7f}\u{9b}\u{2028}\"",
        &deep,
        &large,
    ] {
        let id = desk.add_one(Q, NewJob::new(json(text))).await;
        let job = desk.claim_one(Q, "r").await;
        assert_eq!(job.identity.payload.as_str(), text);
        assert_eq!(desk.found(&id).await.job.identity.payload.as_str(), text);
        let item = serde_json::to_string(&desk.item(&id).await).unwrap();
        assert!(item.contains(&format!("\"payload\":{text},")));
        let outcome = acta_core::store::Outcome::Succeeded(Some(json(text)));
        desk.settle(Q, &job, outcome).await.unwrap();
        assert_eq!(desk.item(&id).await.output.unwrap().as_str(), text);
    }
}

/// Quotes, comments, wildcards, paths: a label is a label.
pub async fn c067_c083_labels_are_literal(desk: Desk) {
    let hostile = [
        "o'brien",
        "x'); DROP TABLE acta_jobs;--",
        "\"",
        "\\",
        "$1",
        "%",
        "_",
        "?1",
        ";",
        "`",
        "../x",
        "1",
        "001",
        "1e8",
        "NULL",
        " lead and trail ",
        "名前",
        "É",
        "E\u{301}",
    ];
    for text in hostile {
        let job = NewJob { lane: Some(label(text)), key: Some(label(text)), ..with_key(text) };
        let id = desk.add_one(Q, job).await;
        let item = desk.item(&id).await;
        let expected = Some(label(text));
        assert_eq!((&item.lane, &item.key, &item.dedup_key), (&expected, &expected, &expected));
        for filter in [
            JobFilter { lane: expected.clone(), ..JobFilter::default() },
            JobFilter { key: expected.clone(), ..JobFilter::default() },
        ] {
            let page = desk.store.jobs(JobFilter { limit: 100, ..filter }).await.unwrap();
            assert_eq!(page.jobs.iter().map(|found| &found.job.identity.id).collect::<Vec<_>>(), [&id], "{text}");
        }
        assert_eq!(desk.store.key_holder(namespace(Q), label(text)).await, Ok(Some(id.clone())));
        let job = desk.claim_one(Q, text).await;
        assert_eq!((job.identity.id.clone(), job.standing.claimed_by.clone()), (id, expected));
        desk.done(Q, &job).await;
    }
    assert_eq!(desk.all(Q).await.len(), hostile.len());
}

/// The trace of whoever enqueued is there for whoever claims.
pub async fn a_trace_is_kept_with_the_job(desk: Desk) {
    let parent = acta_core::Traceparent::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let traced = NewJob { traceparent: Some(parent.clone()), ..new_job() };
    let ids =
        [desk.add_one(Q, traced.clone()).await, desk.add_one(Q, NewJob { lane: Some(label("A")), ..traced }).await];
    let plain = desk.add_one(Q, new_job()).await;
    for id in ids {
        assert_eq!(desk.item(&id).await.traceparent.as_ref(), Some(&parent));
        assert_eq!(desk.claim_one(Q, "r").await.identity.traceparent.as_ref(), Some(&parent));
    }
    assert_eq!(desk.claim_one(Q, "r").await.identity.traceparent, None);
    assert_eq!(desk.item(&plain).await.traceparent, None);
}

/// Two names that differ only by case can't both be there, and the answer says how to write it.
pub async fn c070_names_that_differ_by_case_are_refused(desk: Desk) {
    desk.add_one("queues/Mail", new_job()).await;
    for path in ["queues/mail", "queues/MAIL"] {
        let refusal = desk.try_add(path, vec![new_job()]).await.unwrap_err();
        assert!(refusal.is_invalid(), "{refusal}");
        assert_eq!(refusal.hint().as_deref(), Some("write \"queues/Mail\""));
        let claim = acta_core::store::Claim::one(namespace(path), label("r"));
        assert!(desk.store.claim(claim).await.unwrap_err().is_invalid());
        let filter = JobFilter { namespace: Some(namespace(path)), ..JobFilter::default() };
        assert!(desk.store.jobs(filter).await.unwrap_err().is_invalid());
    }
    assert!(desk.try_add("transactions/mail", vec![new_job()]).await.is_ok(), "another family is another namespace");
    let named = |name: &str| NewJob { name: Some(Name::new("name", name).unwrap()), ..new_job() };
    desk.add_one("plain", named("Report")).await;
    assert!(desk.try_add("plain", vec![named("report")]).await.unwrap_err().is_invalid());
    let definition = Definition::new(Name::new("name", "REPORT").unwrap());
    assert!(desk.store.define(Define::Job(definition)).await.unwrap_err().is_invalid());
    for bad in ["../x", "queues/a/b", "a b", "", "queues/", "é", "a\0"] {
        assert!(bad.parse::<Namespace>().is_err(), "{bad}");
    }
    assert!(Label::new("robot", "a\0b").is_err());
}

/// Read back as written, acted on neither early nor a millisecond late.
pub async fn c099_instants_are_kept_to_the_millisecond(desk: Desk) {
    for delay in [1, 250, 500, 999, 1_500] {
        let run_at = acta_core::Clock::now(desk.clock.as_ref()).plus_ms(delay);
        let id = desk.add_one(Q, NewJob { run_at: Some(run_at), ..new_job() }).await;
        assert_eq!(desk.item(&id).await.run_at, Some(run_at));
        desk.clock.advance_ms(delay - 1);
        assert!(desk.claim(Q, "r", 1).await.is_empty(), "{delay}");
        desk.clock.advance_ms(1);
        assert_eq!(desk.claim_one(Q, "r").await.identity.id, id);
    }
    let far = acta_core::Timestamp::MAX;
    let id = desk.add_one(Q, NewJob { run_at: Some(far), ..new_job() }).await;
    assert_eq!(desk.item(&id).await.run_at, Some(far));
    assert_eq!(desk.state(&id).await, State::Scheduled);
}

/// All or none, and the answer says which one.
pub async fn c129_a_batch_with_a_bad_job_adds_nothing_and_names_it(desk: Desk) {
    let bad = [
        NewJob { priority: Some(1), ..new_job() },
        NewJob { max_attempts: Some(0), ..new_job() },
        NewJob { lease: Some(Span::from_millis(0)), ..new_job() },
    ];
    for job in bad {
        let refusal = desk.try_add(Q, vec![new_job(), with_key("k"), job]).await.unwrap_err();
        assert!(refusal.is_invalid() && refusal.to_string().contains("element 2"), "{refusal}");
    }
    let named = |name: &str| NewJob { name: Some(Name::new("name", name).unwrap()), ..new_job() };
    let refusal = desk.try_add(Q, vec![named("Foo"), named("foo")]).await.unwrap_err();
    assert!(refusal.is_invalid() && refusal.to_string().contains("element 1"), "{refusal}");
    assert!(desk.store.queues(QueueFilter::default()).await.unwrap().queues.is_empty(), "not even the queue was made");
    assert!(desk.try_add(Q, vec![with_key("k")]).await.unwrap()[0].created);
}

/// In the two queue families order is insertion order, whatever way a priority comes.
pub async fn a_priority_is_refused_in_the_queue_families(desk: Desk) {
    let name = Name::new("name", "urgent").unwrap();
    let definition = Definition { priority: Some(90), ..Definition::new(name.clone()) };
    desk.store.define(Define::Job(definition)).await.unwrap();
    for path in [Q, "transactions/q"] {
        let direct = NewJob { priority: Some(50), ..new_job() };
        assert!(desk.try_add(path, vec![direct]).await.unwrap_err().is_invalid());
        let by_definition = NewJob { name: Some(name.clone()), ..new_job() };
        assert!(desk.try_add(path, vec![by_definition]).await.unwrap_err().is_invalid());
    }
    let plain = desk.add_one("plain", NewJob { name: Some(name), ..new_job() }).await;
    assert_eq!(desk.item(&plain).await.priority, Some(90));
    let beyond = NewJob { priority: Some(101), ..new_job() };
    assert!(desk.try_add("plain", vec![beyond]).await.unwrap_err().is_invalid());
}

/// The queue contract's fields, in its order and formats, before all that the ledger adds.
pub async fn an_item_has_the_contract_s_fields_first(desk: Desk) {
    let payload = r#"{ "jobId": "job-process-invoices-m2x9-3a11" }"#;
    let id = desk.add_one("queues/process-invoices", NewJob::new(json(payload))).await;
    let job = desk.claim_one("queues/process-invoices", "robot-01").await;
    let item = Item::new(&namespace("queues/process-invoices"), &job);
    let expected = format!(
        concat!(
            r#"{{"id":"{}","queue":"process-invoices","status":"claimed","payload":{},"attempts":1,"maxAttempts":1,"#,
            r#""retryable":true,"claimedBy":"robot-01","claimedAt":"2026-10-03T09:12:00.000Z","#,
            r#""createdAt":"2026-10-03T09:12:00.000Z","state":"claimed","leaseExpiresAt":"2026-10-03T09:22:00.000Z","fence":1}}"#
        ),
        id, payload
    );
    assert_eq!(serde_json::to_string(&item).unwrap(), expected);
    let plain = desk.add_one("plain", new_job()).await;
    let text = serde_json::to_string(&desk.item(&plain).await).unwrap();
    assert!(text.contains(r#""namespace":"plain","status":"ready""#) && !text.contains("\"state\""), "{text}");
}

/// A definition says what a job leaves open, and a job what it wants otherwise.
pub async fn definitions_fill_what_a_job_leaves_open(desk: Desk) {
    let name = Name::new("name", "report").unwrap();
    let definition = Definition {
        lane: Some(label("L")),
        priority: Some(70),
        max_attempts: Some(7),
        retryable: Some(false),
        backoff: Some(Backoff::None),
        ..Definition::new(name.clone())
    };
    desk.store.define(Define::Job(definition)).await.unwrap();
    let named = NewJob { name: Some(name), ..new_job() };
    let own = NewJob {
        lane: Some(label("M")),
        priority: Some(10),
        max_attempts: Some(1),
        retryable: Some(true),
        ..named.clone()
    };
    let jobs = desk.add("plain", vec![named, own]).await;
    let item = desk.item(&jobs[0]).await;
    assert_eq!((item.lane, item.priority, item.max_attempts, item.retryable), (Some(label("L")), Some(70), 7, false));
    let item = desk.item(&jobs[1]).await;
    assert_eq!((item.lane, item.priority, item.max_attempts, item.retryable), (Some(label("M")), Some(10), 1, true));
}
