//! Workers work jobs off.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use acta::{Context, Definition, Failure, JobError, Note, Outcome, State, Worker};
use acta_core::job::FailureKind;
use acta_core::store::{Enqueue, NewJob};
use acta_core::{Json, Name};
use common::{Bench, Order, Running, timely};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

on_every_store! {
    a_queue_is_drained_and_outputs_are_kept,
    a_lane_is_worked_off_in_order_by_many_slots_and_workers,
    a_failure_is_tried_again_until_the_attempts_are_spent,
    an_error_is_a_system_failure_with_its_sources,
    a_business_failure_is_final,
    what_is_to_be_tried_later_is_not_tried_before,
    a_panic_is_a_failure_and_the_worker_goes_on,
    a_payload_that_does_not_decode_fails_once_and_names_field_and_type,
    jobs_of_other_types_are_left_alone,
    two_hundred_jobs_run_at_once,
    many_jobs_are_worked_off_in_little_time,
    a_new_job_wakes_an_idle_worker,
    a_job_by_name_gets_what_its_type_says,
    a_set_up_that_can_not_work_is_refused,
    ended_jobs_are_pruned_and_due_ones_brought_in,
    a_raw_handler_says_what_becomes_of_its_job_and_the_worker_ends_when_idle,
}

async fn a_raw_handler_says_what_becomes_of_its_job_and_the_worker_ends_when_idle(bench: Bench) {
    let namespace: acta_core::Namespace = "orders".parse().unwrap();
    let definition = Definition { max_attempts: Some(2), ..Definition::new(Name::new("name", "raw").unwrap()) };
    let job =
        |payload: &str| NewJob { name: Some(definition.name.clone()), ..NewJob::new(Json::new(payload).unwrap()) };
    let jobs = vec![job("{ \"a\": 1.0 }"), job("2")];
    let added = bench.ledger.store().enqueue(Enqueue { namespace, jobs }).await.unwrap();
    let (sender, mut noted) = mpsc::unbounded_channel();
    let worker = bench.worker().until_idle().on_note(move |note| {
        if let Note::Settled(ticket, _, answer) = note {
            sender.send((ticket.id.clone(), answer.state)).unwrap();
        }
    });
    let worker = worker.handle_raw(definition, |context: Context| async move {
        context.started().await.unwrap();
        match context.job().identity.payload.as_str() {
            "2" => Outcome::Failed(Failure::new(FailureKind::Business, "no")),
            _ => Outcome::Succeeded(Some(context.job().identity.payload.clone())),
        }
    });
    timely(worker.run(std::future::pending())).await.unwrap();
    let mut ends = [noted.recv().await.unwrap(), noted.recv().await.unwrap()];
    ends.sort_by_key(|(id, _)| id != &added[0].id);
    assert_eq!(ends, [(added[0].id.clone(), State::Succeeded), (added[1].id.clone(), State::Failed)]);
    assert_eq!(bench.item(&added[0].id).await.output.unwrap().as_str(), "{ \"a\": 1.0 }", "byte for byte");
}

async fn a_queue_is_drained_and_outputs_are_kept(bench: Bench) {
    let orders: Vec<Order> = (0..50).map(Order::new).collect();
    let added = bench.ledger.enqueue_many(&orders).await.unwrap();
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().concurrency(8).handle(move |order: Order, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send((order.number, context.attempt(), context.fence())).unwrap();
            Ok(json!({ "done": order.number }))
        }
    });
    let running = Running::start(worker);
    let mut numbers = Vec::new();
    for _ in 0..50 {
        let (number, attempt, fence) = timely(ran.recv()).await.unwrap();
        assert_eq!((attempt, fence), (1, 1));
        numbers.push(number);
    }
    running.end().await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    assert!(ran.recv().await.is_none(), "each once");
    for (number, added) in added.iter().enumerate() {
        let item = bench.item(&added.id).await;
        assert_eq!(item.output.unwrap().as_str(), format!(r#"{{"done":{number}}}"#));
        assert_eq!(bench.state(&added.id).await, State::Succeeded);
    }
}

async fn a_lane_is_worked_off_in_order_by_many_slots_and_workers(bench: Bench) {
    let customers = ["ada", "bob", "eve"];
    let orders: Vec<Order> = (0..20).flat_map(|number| customers.map(|customer| Order::of(customer, number))).collect();
    bench.ledger.enqueue_many(&orders).await.unwrap();
    let (sender, mut ran) = mpsc::unbounded_channel();
    let workers: Vec<Running> = (0..2)
        .map(|_| {
            let sender = sender.clone();
            Running::start(bench.worker().concurrency(8).handle(move |order: Order, _: Context| {
                let sender = sender.clone();
                async move {
                    sender.send((order.clone(), "begins")).unwrap();
                    tokio::task::yield_now().await;
                    sender.send((order, "ends")).unwrap();
                    Ok(())
                }
            }))
        })
        .collect();
    let mut seen = Vec::new();
    for _ in 0..2 * orders.len() {
        seen.push(timely(ran.recv()).await.unwrap());
    }
    for customer in customers {
        let of_lane: Vec<(u32, &str)> = seen
            .iter()
            .filter(|(order, _)| order.customer.as_deref() == Some(customer))
            .map(|(order, what)| (order.number, *what))
            .collect();
        let expected: Vec<(u32, &str)> = (0..20).flat_map(|number| [(number, "begins"), (number, "ends")]).collect();
        assert_eq!(of_lane, expected, "{customer}");
    }
    for worker in workers {
        worker.end().await;
    }
}

async fn a_failure_is_tried_again_until_the_attempts_are_spent(bench: Bench) {
    let lucky = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let unlucky = bench.ledger.enqueue(&Order::new(2)).await.unwrap().id;
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |order: Order, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send((order.number, context.attempt())).unwrap();
            if order.number == 1 && context.attempt() == 3 { Ok(()) } else { Err(JobError::system("not yet")) }
        }
    });
    let running = Running::start(worker);
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(timely(ran.recv()).await.unwrap());
    }
    running.end().await;
    seen.sort_unstable();
    assert_eq!(seen, [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]);
    assert_eq!(bench.state(&lucky).await, State::Succeeded);
    assert_eq!(bench.state(&unlucky).await, State::Failed);
    let exception = bench.item(&unlucky).await.exception.unwrap();
    assert_eq!((exception.kind, exception.message.as_str()), (FailureKind::System, "not yet"));
}

/// Runs one order to its end and looks at its exception.
async fn exception_of(bench: &Bench, worker: Worker, order: &Order) -> (usize, acta_core::job::Exception) {
    let id = bench.ledger.prepare(order).max_attempts(1).enqueue().await.unwrap().id;
    let running = Running::start(worker);
    bench.until(&id, State::Failed).await;
    running.end().await;
    let item = bench.item(&id).await;
    (item.attempts as usize, item.exception.unwrap())
}

/// An error with a source.
#[derive(Debug)]
struct Outer(std::num::ParseIntError);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no order number")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

async fn an_error_is_a_system_failure_with_its_sources(bench: Bench) {
    let worker = bench.worker().handle(|_: Order, _: Context| async {
        let number: u32 = "twelve".parse()?;
        Err::<(), _>(JobError::from(std::io::Error::other(number.to_string())))
    });
    let (_, exception) = exception_of(&bench, worker, &Order::new(1)).await;
    assert_eq!(exception.kind, FailureKind::System);
    assert_eq!(exception.message, "invalid digit found in string");

    let worker = bench.worker().handle(|_: Order, _: Context| async {
        "twelve".parse::<u32>().map_err(Outer)?;
        Ok(())
    });
    let (_, exception) = exception_of(&bench, worker, &Order::new(2)).await;
    assert_eq!(exception.message, "no order number: invalid digit found in string");
}

async fn a_business_failure_is_final(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let worker = bench.worker().handle(move |_: Order, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(JobError::business("sold-out", "nothing left").with_details(&json!({ "left": 0 }))) }
    });
    let running = Running::start(worker);
    timely(bench.outage.until_called("exchange", 1)).await;
    running.end().await;
    let exception = bench.item(&id).await.exception.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1, "though three attempts were allowed");
    assert_eq!((exception.kind, exception.code.as_deref()), (FailureKind::Business, Some("sold-out")));
    assert_eq!(exception.details.unwrap().as_str(), r#"{"left":0}"#);
}

async fn what_is_to_be_tried_later_is_not_tried_before(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |_: Order, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send(context.attempt()).unwrap();
            if context.attempt() == 1 { Err(JobError::retry_after(Duration::from_mins(1), "busy")) } else { Ok(()) }
        }
    });
    let running = Running::start(worker);
    assert_eq!(timely(ran.recv()).await, Some(1));
    // Twice around, and it was left alone.
    timely(bench.outage.until_called_again("claim", 2)).await;
    bench.pass(59);
    timely(bench.outage.until_called_again("claim", 2)).await;
    assert!(ran.try_recv().is_err());
    bench.pass(10);
    assert_eq!(timely(ran.recv()).await, Some(2));
    running.end().await;
    assert_eq!(bench.state(&id).await, State::Succeeded);
}

async fn a_panic_is_a_failure_and_the_worker_goes_on(bench: Bench) {
    let id = bench.ledger.prepare(&Order::new(13)).max_attempts(1).enqueue().await.unwrap().id;
    let good = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().concurrency(1).handle(move |order: Order, _: Context| {
        // Before the first await as well as after it.
        assert!(order.number != 13, "unlucky number {}", order.number);
        let sender = sender.clone();
        async move { Ok(sender.send(order.number)?) }
    });
    let running = Running::start(worker);
    assert_eq!(timely(ran.recv()).await, Some(1));
    running.end().await;
    let exception = bench.item(&id).await.exception.unwrap();
    assert_eq!(exception.message, "the handler panicked: unlucky number 13");
    assert_eq!((exception.kind, exception.code.as_deref()), (FailureKind::System, Some("panic")));
    assert_eq!(bench.state(&good).await, State::Succeeded);
}

async fn a_payload_that_does_not_decode_fails_once_and_names_field_and_type(bench: Bench) {
    let name = Some(Name::new("name", "order").unwrap());
    let payload = Json::new(r#"{"number": "seven"}"#).unwrap();
    let jobs = vec![NewJob { name, max_attempts: Some(5), ..NewJob::new(payload) }];
    let enqueue = Enqueue { namespace: "orders".parse().unwrap(), jobs };
    let id = bench.ledger.store().enqueue(enqueue).await.unwrap().remove(0).id;
    let worker = bench.worker().handle(|_: Order, _: Context| async { Ok(()) });
    let running = Running::start(worker);
    timely(bench.outage.until_called("exchange", 1)).await;
    timely(bench.outage.until_called_again("claim", 2)).await;
    running.end().await;
    let item = bench.item(&id).await;
    let exception = item.exception.unwrap();
    assert_eq!((item.attempts, bench.state(&id).await), (1, State::Failed));
    assert_eq!(exception.code.as_deref(), Some("undecodable"));
    let message = exception.message;
    for part in ["working::common::Order", "at number:", "expected u32"] {
        assert!(message.contains(part), "{message}");
    }
}

async fn jobs_of_other_types_are_left_alone(bench: Bench) {
    let payload = Json::new("{}").unwrap();
    let jobs = vec![NewJob { name: Some(Name::new("name", "other").unwrap()), ..NewJob::new(payload.clone()) }];
    let enqueue = Enqueue { namespace: "orders".parse().unwrap(), jobs };
    let id = bench.ledger.store().enqueue(enqueue).await.unwrap().remove(0).id;
    let running = Running::start(bench.worker().handle(|_: Order, _: Context| async { Ok(()) }));
    timely(bench.outage.until_called("claim", 3)).await;
    running.end().await;
    assert_eq!(bench.state(&id).await, State::Ready);
}

async fn two_hundred_jobs_run_at_once(bench: Bench) {
    let orders: Vec<Order> = (0..200).map(Order::new).collect();
    let added = bench.ledger.enqueue_many(&orders).await.unwrap();
    let arrived = Arc::new(Semaphore::new(0));
    let gate = Arc::new(Semaphore::new(0));
    let (arrivals, gates) = (Arc::clone(&arrived), Arc::clone(&gate));
    let worker = bench.worker().concurrency(200).handle(move |_: Order, _: Context| {
        let (arrivals, gates) = (Arc::clone(&arrivals), Arc::clone(&gates));
        async move {
            arrivals.add_permits(1);
            // Nobody goes on before all are there.
            let _pass = gates.acquire().await?;
            Ok(())
        }
    });
    let running = Running::start(worker);
    timely(arrived.acquire_many(200)).await.unwrap().forget();
    gate.add_permits(200);
    running.end().await;
    for added in added {
        assert_eq!(bench.state(&added.id).await, State::Succeeded);
    }
}

async fn many_jobs_are_worked_off_in_little_time(bench: Bench) {
    const JOBS: u32 = 3_000;
    let orders: Vec<Order> = (0..JOBS).map(Order::new).collect();
    bench.ledger.enqueue_many(&orders).await.unwrap();
    let done = Arc::new(Semaphore::new(0));
    let ends = Arc::clone(&done);
    let worker = bench.worker().concurrency(200).handle(move |_: Order, _: Context| {
        ends.add_permits(1);
        async { Ok(()) }
    });
    let start = Instant::now();
    let running = Running::start(worker);
    timely(done.acquire_many(JOBS)).await.unwrap().forget();
    running.end().await;
    let took = start.elapsed();
    let calls = bench.outage.calls("exchange") + bench.outage.calls("claim");
    println!("{JOBS} jobs in {took:?}, {calls} round trips, {:.0} jobs/s", f64::from(JOBS) / took.as_secs_f64());
    assert!(calls < JOBS as usize / 2, "results travel together: {calls} round trips");
}

async fn a_new_job_wakes_an_idle_worker(bench: Bench) {
    let (sender, mut ran) = mpsc::unbounded_channel();
    // It would not look by itself while this test has patience.
    let worker = bench.worker().poll(Duration::from_hours(24)).handle(move |order: Order, _: Context| {
        let sender = sender.clone();
        async move { Ok(sender.send(order.number)?) }
    });
    let running = Running::start(worker);
    timely(bench.outage.until_called("changed", 1)).await;
    for number in 0..5 {
        bench.ledger.enqueue(&Order::new(number)).await.unwrap();
        assert_eq!(timely(ran.recv()).await, Some(number));
    }
    running.end().await;
}

async fn a_job_by_name_gets_what_its_type_says(bench: Bench) {
    let running = Running::start(bench.worker().handle(|_: Order, _: Context| async { Ok(()) }));
    timely(bench.outage.until_called("define", 1)).await;
    running.end().await;
    let name = Some(Name::new("name", "order").unwrap());
    let jobs = vec![NewJob { name, ..NewJob::new(Json::new(r#"{"number": 1}"#).unwrap()) }];
    let enqueue = Enqueue { namespace: "orders".parse().unwrap(), jobs };
    let id = bench.ledger.store().enqueue(enqueue).await.unwrap().remove(0).id;
    assert_eq!(bench.item(&id).await.max_attempts, 3);
}

async fn a_set_up_that_can_not_work_is_refused(bench: Bench) {
    let nothing = bench.worker().run(std::future::pending()).await;
    assert!(nothing.unwrap_err().is_invalid(), "no handler");
    let elsewhere = Worker::new(&bench.ledger, "invoices");
    let elsewhere = elsewhere.handle(|_: Order, _: Context| async { Ok(()) });
    let fault = elsewhere.run(std::future::pending()).await.unwrap_err();
    assert!(fault.to_string().contains("invoices"), "{fault}");
}

async fn ended_jobs_are_pruned_and_due_ones_brought_in(bench: Bench) {
    let old = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let running = Running::start(bench.worker().handle(|_: Order, _: Context| async { Ok(()) }));
    timely(bench.outage.until_called("exchange", 1)).await;
    bench.pass(40 * 86_400);
    timely(bench.outage.until_called_again("prune", 2)).await;
    running.end().await;
    assert!(bench.ledger.job(&old).await.unwrap_err().is_not_found());
    assert!(bench.outage.calls("recover") >= 2);
}
