//! Durable sleeps, waits and steps: what a handler did before its job waited is not done again.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acta::{Context, State};
use common::{Bench, Order, Running, timely};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

on_every_store! {
    a_sleep_gives_the_slot_back_and_the_handler_runs_again,
    a_wait_ends_with_its_signal,
    a_signal_that_came_first_is_found,
    a_wait_ends_with_its_deadline,
    waits_follow_each_other_in_their_order,
    a_step_is_done_once,
    a_step_that_can_not_be_kept_fails_the_run,
    progress_is_kept,
}

/// Counts the runs of a handler and the steps that it takes.
fn counter() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    (Arc::default(), Arc::default())
}

async fn a_sleep_gives_the_slot_back_and_the_handler_runs_again(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().concurrency(1).handle(move |order: Order, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send((order.number, "begins", context.fence()))?;
            if order.number == 1 {
                context.sleep(Duration::from_mins(10)).await?;
                context.sleep(Duration::from_mins(10)).await?;
            }
            Ok(sender.send((order.number, "ends", context.fence()))?)
        }
    });
    let running = Running::start(worker);
    assert_eq!(timely(ran.recv()).await, Some((1, "begins", 1)));
    // The only slot is free meanwhile.
    bench.ledger.enqueue(&Order::new(2)).await.unwrap();
    assert_eq!(timely(ran.recv()).await, Some((2, "begins", 1)));
    assert_eq!(timely(ran.recv()).await, Some((2, "ends", 1)));
    bench.until(&id, State::Scheduled).await;
    assert_eq!(bench.item(&id).await.run_at, Some(Bench::at(600)));
    bench.pass(601);
    assert_eq!(timely(ran.recv()).await, Some((1, "begins", 2)));
    bench.until(&id, State::Scheduled).await;
    assert_eq!(bench.item(&id).await.run_at, Some(Bench::at(1_201)), "the second counts from its own beginning");
    bench.pass(600);
    assert_eq!(timely(ran.recv()).await, Some((1, "begins", 3)));
    assert_eq!(timely(ran.recv()).await, Some((1, "ends", 3)));
    running.end().await;
    assert_eq!((bench.state(&id).await, bench.item(&id).await.attempts), (State::Succeeded, 1));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Payment {
    amount: u32,
}

/// A worker whose handler waits for a payment for at most an hour, and keeps what came.
fn cashier(bench: &Bench) -> acta::Worker {
    bench.worker().handle(|_: Order, context: Context| async move {
        let deadline = Some(context.after(Duration::from_hours(1)));
        context.wait_signal::<Payment>("paid", deadline).await.map(|paid| paid.map(|paid| paid.amount))
    })
}

async fn a_wait_ends_with_its_signal(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let running = Running::start(cashier(&bench));
    bench.until(&id, State::Waiting).await;
    bench.ledger.signal(&id, "paid", &Payment { amount: 7 }).await.unwrap();
    bench.until(&id, State::Succeeded).await;
    running.end().await;
    assert_eq!(bench.item(&id).await.output.unwrap().as_str(), "7");
}

async fn a_signal_that_came_first_is_found(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    bench.ledger.signal(&id, "paid", &Payment { amount: 8 }).await.unwrap();
    let running = Running::start(cashier(&bench));
    bench.until(&id, State::Succeeded).await;
    running.end().await;
    assert_eq!(bench.item(&id).await.output.unwrap().as_str(), "8");
}

async fn a_wait_ends_with_its_deadline(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let running = Running::start(cashier(&bench));
    bench.until(&id, State::Waiting).await;
    bench.pass(3_599);
    timely(bench.outage.until_called_again("claim", 2)).await;
    assert_eq!(bench.state(&id).await, State::Waiting);
    bench.pass(1);
    bench.until(&id, State::Succeeded).await;
    running.end().await;
    assert_eq!(bench.item(&id).await.output, None);
}

async fn waits_follow_each_other_in_their_order(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let worker = bench.worker().handle(|_: Order, context: Context| async move {
        let one: Option<String> = context.wait_signal("word", None).await?;
        let other: Option<String> = context.wait_signal("word", None).await?;
        Ok(one.zip(other))
    });
    let running = Running::start(worker);
    for word in ["hello", "world"] {
        bench.ledger.signal(&id, "word", &word).await.unwrap();
    }
    bench.until(&id, State::Succeeded).await;
    running.end().await;
    assert_eq!(bench.item(&id).await.output.unwrap().as_str(), r#"["hello","world"]"#);
}

async fn a_step_is_done_once(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (runs, steps) = counter();
    let (counted, stepped) = (Arc::clone(&runs), Arc::clone(&steps));
    let worker = bench.worker().handle(move |_: Order, context: Context| {
        let stepped = Arc::clone(&stepped);
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            let step = async || Ok(stepped.fetch_add(1, Ordering::SeqCst) + 100);
            let number: usize = context.step("charge", step).await?;
            // In the same run as in a later one.
            let step = async || Ok(stepped.fetch_add(1, Ordering::SeqCst) + 100);
            let again: usize = context.step("charge", step).await?;
            assert_eq!(number, again);
            if run < 3 { Err(acta::JobError::system("not yet")) } else { Ok(number) }
        }
    });
    let running = Running::start(worker);
    bench.until(&id, State::Succeeded).await;
    running.end().await;
    assert_eq!((runs.load(Ordering::SeqCst), steps.load(Ordering::SeqCst)), (3, 1));
    assert_eq!(bench.item(&id).await.output.unwrap().as_str(), "100");
    let kept = bench.ledger.store().steps(id).await.unwrap();
    assert_eq!((kept.len(), kept[0].0.as_str(), kept[0].1.as_str()), (1, "charge", "100"));
}

async fn a_step_that_can_not_be_kept_fails_the_run(bench: Bench) {
    for name in ["wait:1", "sleep:1", ""] {
        let id = bench.ledger.prepare(&Order::new(1)).max_attempts(1).enqueue().await.unwrap().id;
        let worker = bench
            .worker()
            .handle(move |_: Order, context: Context| async move { context.step(name, async || Ok(1)).await });
        let running = Running::start(worker);
        bench.until(&id, State::Failed).await;
        running.end().await;
        let message = bench.item(&id).await.exception.unwrap().message;
        assert!(message.starts_with("step"), "{message}");
    }
}

async fn progress_is_kept(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    // Out of reach at first: said again.
    bench.outage.fail("report", 2);
    let worker = bench.worker().handle(|_: Order, context: Context| async move { context.progress("half").await });
    let running = Running::start(worker);
    bench.until(&id, State::Succeeded).await;
    running.end().await;
    assert_eq!(bench.item(&id).await.progress.as_deref(), Some("half"));
    assert_eq!((bench.outage.calls("report"), bench.item(&id).await.fence), (3, Some(1)), "within one run");
}
