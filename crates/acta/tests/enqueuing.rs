//! Jobs go into the ledger.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acta::{Context, Job, JobId, State, Worker};
use acta_core::store::QueueFilter;
use common::{Bench, Order, timely};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

on_every_store! {
    what_is_said_at_the_call_goes_before_what_the_type_says,
    concurrent_enqueues_travel_together,
    one_caller_s_refusal_reaches_no_other,
    an_outage_is_told_to_all_and_the_next_goes_through,
    a_second_job_of_a_key_is_answered_with_the_first,
    many_are_added_or_none,
    a_trace_goes_from_the_caller_to_the_handler_and_on,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl Job for Mail {
    const NAME: &'static str = "mail";
    const QUEUE: &'static str = "mails";
    const LANE: Option<&'static str> = Some("all mails");
    const PRIORITY: Option<u8> = Some(20);
    const RETENTION: Option<Duration> = Some(Duration::from_hours(1));

    fn key(&self) -> Option<String> {
        Some(format!("mail to {}", self.to))
    }

    fn dedup_key(&self) -> Option<String> {
        (self.to == "once").then(|| self.to.clone())
    }
}

fn mail(to: &str) -> Mail {
    Mail { to: to.into() }
}

async fn what_is_said_at_the_call_goes_before_what_the_type_says(bench: Bench) {
    let plain = bench.ledger.enqueue(&mail("ada")).await.unwrap().id;
    let item = bench.item(&plain).await;
    assert_eq!(item.lane.unwrap().as_str(), "all mails");
    assert_eq!((item.priority, item.key.unwrap().as_str()), (Some(20), "mail to ada"));
    assert_eq!((item.name.unwrap().as_str(), item.payload.as_str()), ("mail", r#"{"to":"ada"}"#));
    let said = bench.ledger.prepare(&mail("bob"));
    let said = said.lane("own").key("k").dedup_key("d").priority(90).delay(Duration::from_mins(1)).max_attempts(7);
    let said = said.expires_in(Duration::from_mins(2)).lease(Duration::from_secs(5)).backoff(acta::Backoff::None);
    let id = said.enqueue().await.unwrap().id;
    let item = bench.item(&id).await;
    assert_eq!((item.lane.unwrap().as_str(), item.key.unwrap().as_str()), ("own", "k"));
    assert_eq!((item.dedup_key.unwrap().as_str(), item.priority, item.max_attempts), ("d", Some(90), 7));
    assert_eq!((item.run_at, item.expires_at), (Some(Bench::at(60)), Some(Bench::at(120))));
    assert_eq!(bench.state(&id).await, State::Scheduled);
    assert_eq!(bench.outage.calls("define"), 1, "once a process and type");
    let fault = bench.ledger.prepare(&mail("x")).lane("").enqueue().await.unwrap_err();
    assert!(fault.is_invalid(), "{fault}");
}

/// Enqueues so many at once.
async fn at_once(bench: &Bench, orders: Vec<Order>) -> Vec<(u32, acta::Result<acta::Enqueued>)> {
    let mut calls = JoinSet::new();
    for order in orders {
        let ledger = bench.ledger.clone();
        calls.spawn(async move { (order.number, ledger.enqueue(&order).await) });
    }
    let mut answers = calls.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers
}

async fn concurrent_enqueues_travel_together(bench: Bench) {
    bench.ledger.define::<Order>().await.unwrap();
    let answers = at_once(&bench, (0..500).map(Order::new).collect()).await;
    for (number, answer) in answers {
        let item = bench.item(&answer.unwrap().id).await;
        assert_eq!(item.payload.as_str(), format!(r#"{{"number":{number}}}"#), "each has its own");
    }
    let calls = bench.outage.calls("enqueue");
    assert!(calls < 250, "{calls} calls for 500 jobs");
}

async fn one_caller_s_refusal_reaches_no_other(bench: Bench) {
    bench.ledger.define::<Order>().await.unwrap();
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let ledger = bench.ledger.clone();
        // A priority that there is none of, here and there.
        let priority = if number % 10 == 7 { 200 } else { 50 };
        calls.spawn(async move {
            let answer = ledger.prepare(&Order::new(number)).priority(priority).enqueue().await;
            (number, answer)
        });
    }
    for (number, answer) in calls.join_all().await {
        match answer {
            Ok(added) => assert!(number % 10 != 7 && added.created),
            Err(fault) => {
                assert!(number % 10 == 7 && fault.is_invalid(), "{number}: {fault}");
                assert!(!fault.to_string().contains("element"), "it knows of no batch: {fault}");
            }
        }
    }
    let jobs = bench.ledger.store().queues(QueueFilter::default()).await.unwrap().queues[0].1.values().sum::<u64>();
    assert_eq!(jobs, 45);
}

async fn an_outage_is_told_to_all_and_the_next_goes_through(bench: Bench) {
    bench.ledger.define::<Order>().await.unwrap();
    bench.outage.fail("enqueue", 1);
    let answers = at_once(&bench, (0..3).map(Order::new).collect()).await;
    let failed = answers.iter().filter(|(_, answer)| answer.as_ref().is_err_and(acta::Error::is_unavailable)).count();
    assert!((1..=3).contains(&failed), "{answers:?}");
    assert!(bench.ledger.enqueue(&Order::new(9)).await.unwrap().created);
}

async fn a_second_job_of_a_key_is_answered_with_the_first(bench: Bench) {
    let first = bench.ledger.enqueue(&mail("once")).await.unwrap();
    let second = bench.ledger.enqueue(&mail("once")).await.unwrap();
    assert!(first.created && !second.created);
    assert_eq!(first.id, second.id);
}

async fn many_are_added_or_none(bench: Bench) {
    let none: [Mail; 0] = [];
    assert!(bench.ledger.enqueue_many(&none).await.unwrap().is_empty());
    let mails: Vec<Mail> = ["a", "once", "once"].map(mail).into();
    let added = bench.ledger.enqueue_many(&mails).await.unwrap();
    assert_eq!(added.iter().map(|added| added.created).collect::<Vec<_>>(), [true, true, false]);
    let long = mail(&"x".repeat(600));
    let fault = bench.ledger.enqueue_many(&[mail("b"), long]).await.unwrap_err();
    assert!(fault.to_string().starts_with("element 1:"), "{fault}");
}

async fn a_trace_goes_from_the_caller_to_the_handler_and_on(bench: Bench) {
    let trace = |digit: char| format!("00-{}-00f067aa0ba902b7-01", digit.to_string().repeat(32));
    let current = Arc::new(Mutex::new(Some(trace('1'))));
    let source = Arc::clone(&current);
    let ledger = bench.ledger.clone().traced_by(move || source.lock().unwrap().clone());
    let traced = async |id: &JobId| bench.item(id).await.traceparent.map(|parent| parent.to_string());
    let mail = Mail { to: "a@example.com".into() };
    let first = ledger.enqueue(&mail).await.unwrap().id;
    assert_eq!(traced(&first).await, Some(trace('1')));
    let many = ledger.enqueue_many([&mail, &mail]).await.unwrap();
    assert_eq!(traced(&many[1].id).await, Some(trace('1')));
    let told = ledger.prepare(&mail).traceparent(&trace('2')).enqueue().await.unwrap().id;
    assert_eq!(traced(&told).await, Some(trace('2')), "what is said at the call goes first");
    assert!(ledger.prepare(&mail).traceparent("2").enqueue().await.unwrap_err().is_invalid());
    *current.lock().unwrap() = Some("nonsense".into());
    let untraced = ledger.enqueue(&mail).await.unwrap().id;
    assert_eq!(traced(&untraced).await, None);

    // A handler is in the trace of its job, whoever asks.
    let (sender, mut seen) = mpsc::unbounded_channel();
    let within = ledger.clone();
    let worker =
        Worker::new(&ledger, Mail::QUEUE).concurrency(1).until_idle().handle(move |mail: Mail, context: Context| {
            let (sender, within) = (sender.clone(), within.clone());
            async move {
                let next = match mail.to.as_str() {
                    "next" => None,
                    _ => Some(within.enqueue(&Mail { to: "next".into() }).await?.id),
                };
                sender.send((context.traceparent().map(ToString::to_string), next))?;
                Ok(())
            }
        });
    timely(worker.run(std::future::pending())).await.unwrap();
    let expected = [Some(trace('1')), Some(trace('1')), Some(trace('1')), Some(trace('2')), None];
    let mut next = Vec::new();
    for expected in &expected {
        let (of_handler, id) = seen.recv().await.unwrap();
        assert_eq!(&of_handler, expected);
        next.extend(id);
    }
    for (id, expected) in next.iter().zip(expected) {
        assert_eq!(traced(id).await, expected, "and so is what it enqueues");
    }
}
