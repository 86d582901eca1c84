//! Shutdowns: within the grace, beyond it, beyond everything.

mod common;

use std::time::Duration;

use acta::{Context, JobError, State, StopReason};
use common::{Bench, Order, Running, timely};
use tokio::sync::{mpsc, watch};

on_every_store! {
    running_jobs_finish_within_the_grace_and_nothing_new_begins,
    after_the_grace_handlers_are_told_and_their_jobs_are_given_back,
    who_does_not_return_is_left_and_its_lease_lapses,
    an_idle_worker_ends_at_once,
}

async fn running_jobs_finish_within_the_grace_and_nothing_new_begins(bench: Bench) {
    let first = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (sender, mut began) = mpsc::unbounded_channel();
    let (go, going) = watch::channel(false);
    let worker = bench.worker().handle(move |order: Order, context: Context| {
        let (sender, mut going) = (sender.clone(), going.clone());
        async move {
            sender.send(order.number)?;
            going.wait_for(|going| *going).await?;
            assert!(!context.is_cancelled(), "nobody hurries it");
            Ok(())
        }
    });
    let mut running = Running::start(worker.grace(Duration::from_hours(1)));
    assert_eq!(timely(began.recv()).await, Some(1));
    running.stop();
    let second = bench.ledger.enqueue(&Order::new(2)).await.unwrap().id;
    go.send(true).unwrap();
    running.end().await;
    assert_eq!(bench.state(&first).await, State::Succeeded);
    assert_eq!(bench.state(&second).await, State::Ready);
    assert!(began.recv().await.is_none());
}

async fn after_the_grace_handlers_are_told_and_their_jobs_are_given_back(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (sender, mut said) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |_: Order, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send(None)?;
            sender.send(Some(context.cancelled().await))?;
            Err::<(), _>(JobError::system("told to stop"))
        }
    });
    let mut running = Running::start(worker.grace(Duration::from_millis(20)).notice(Duration::from_secs(30)));
    assert_eq!(timely(said.recv()).await, Some(None));
    running.stop();
    assert_eq!(timely(said.recv()).await, Some(Some(StopReason::Stop)));
    running.end().await;
    let item = bench.item(&id).await;
    assert_eq!((bench.state(&id).await, item.attempts, item.exception), (State::Ready, 0, None), "at no cost");
}

async fn who_does_not_return_is_left_and_its_lease_lapses(bench: Bench) {
    let id = bench.ledger.enqueue(&Order::new(1)).await.unwrap().id;
    let (sender, mut began) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |_: Order, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(())?;
            std::future::pending::<()>().await;
            Ok(())
        }
    });
    let mut running = Running::start(worker.grace(Duration::from_millis(20)).notice(Duration::from_millis(20)));
    timely(began.recv()).await.unwrap();
    running.stop();
    running.end().await;
    assert_eq!(bench.state(&id).await, State::Claimed, "nobody says that it was given back");
    assert!(began.recv().await.is_none(), "it is gone");
    bench.pass(61);
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |_: Order, context: Context| {
        let sender = sender.clone();
        async move { Ok(sender.send(context.fence())?) }
    });
    let running = Running::start(worker);
    assert_eq!(timely(ran.recv()).await, Some(2));
    running.end().await;
}

async fn an_idle_worker_ends_at_once(bench: Bench) {
    let worker = bench.worker().handle(|_: Order, _: Context| async { Ok(()) });
    let running = Running::start(worker.poll(Duration::from_hours(24)));
    timely(bench.outage.until_called("changed", 1)).await;
    running.end().await;
}
