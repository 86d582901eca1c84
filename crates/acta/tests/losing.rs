//! Cancels, lost leases, outages.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acta::{Context, Job, JobError, State, StopReason};
use acta_core::store::{Claim, ClaimOutcome, Claimant, Outcome, Settlement, Wave};
use acta_core::{Json, Label};
use common::{Bench, Order, Running, timely};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

on_every_store! {
    a_requested_cancel_reaches_the_handler,
    a_success_beats_a_cancel,
    who_lost_the_lease_is_told_and_changes_nothing,
    an_outage_loses_no_result,
    a_ledger_that_is_out_of_reach_at_the_start_is_waited_for,
    an_outage_of_changes_is_bridged_by_looking,
    long_jobs_keep_their_leases,
}

/// A job whose lease is so short that heartbeats come often.
#[derive(Serialize, Deserialize)]
struct Brief;

impl Job for Brief {
    const NAME: &'static str = "brief";
    const QUEUE: &'static str = "orders";
    const LEASE: Option<Duration> = Some(Duration::from_millis(90));
}

async fn a_requested_cancel_reaches_the_handler(bench: Bench) {
    let id = bench.ledger.enqueue(&Brief).await.unwrap().id;
    let (sender, mut said) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |_: Brief, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send(None)?;
            assert!(!context.is_cancelled());
            sender.send(Some(context.cancelled().await))?;
            Err::<(), _>(JobError::system("stopped half-way"))
        }
    });
    let running = Running::start(worker);
    assert_eq!(timely(said.recv()).await, Some(None));
    let operated = bench.ledger.cancel(&id).await.unwrap();
    assert!(operated.cancel_requested);
    assert_eq!(timely(said.recv()).await, Some(Some(StopReason::Cancel)));
    running.end().await;
    assert_eq!(bench.state(&id).await, State::Cancelled);
    assert_eq!(bench.item(&id).await.exception.unwrap().message, "stopped half-way");
}

async fn a_success_beats_a_cancel(bench: Bench) {
    let id = bench.ledger.enqueue(&Brief).await.unwrap().id;
    let (sender, mut said) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |_: Brief, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send(())?;
            context.cancelled().await;
            Ok(())
        }
    });
    let running = Running::start(worker);
    timely(said.recv()).await.unwrap();
    bench.ledger.cancel(&id).await.unwrap();
    timely(bench.outage.until_called("exchange", 1)).await;
    running.end().await;
    assert_eq!(bench.state(&id).await, State::Succeeded);
}

async fn who_lost_the_lease_is_told_and_changes_nothing(bench: Bench) {
    let id = bench.ledger.prepare(&Order::new(1)).lease(Duration::from_millis(90)).enqueue().await.unwrap().id;
    let (sender, mut said) = mpsc::unbounded_channel();
    // Without a free slot it does not take its own job over.
    let worker = bench.worker().concurrency(1).handle(move |_: Order, context: Context| {
        let sender = sender.clone();
        async move {
            sender.send("begins".to_owned())?;
            let reason = context.cancelled().await;
            sender.send(format!("{reason:?}"))?;
            let late = context.step("charge", async || Ok(1)).await.unwrap_err();
            sender.send(format!("{late:?}"))?;
            Ok("the late one's")
        }
    });
    let running = Running::start(worker);
    assert_eq!(timely(said.recv()).await.unwrap(), "begins");
    // Long after the lease: somebody else takes over and is done, and only then do heartbeats come through.
    bench.outage.fail("heartbeat", 2);
    bench.pass(60);
    let namespace: acta_core::Namespace = "orders".parse().unwrap();
    let taken = timely(async {
        loop {
            // The maintenance of the worker may have put it back, and a heartbeat may have come before.
            let claim = Claim::one(namespace.clone(), Label::new("robot", "other").unwrap());
            if let ClaimOutcome::Claimed(jobs) = bench.ledger.store().claim(claim).await.unwrap().outcome {
                return jobs;
            }
            bench.pass(60);
        }
    })
    .await;
    assert_eq!((taken.len(), &taken[0].identity.id), (1, &id));
    let output = Some(Json::new("\"the present one's\"").unwrap());
    let settlements = vec![Settlement {
        id: id.clone(),
        claimant: Claimant::fence(taken[0].standing.fence),
        outcome: Outcome::Succeeded(output.clone()),
    }];
    bench.ledger.store().settle(Wave { namespace, settlements }).await.unwrap().remove(0).unwrap();
    let settled = bench.item(&id).await;
    assert_eq!(timely(said.recv()).await.unwrap(), "Lost");
    let late = timely(said.recv()).await.unwrap();
    assert!(late.contains("lease lost"), "{late}");
    running.end().await;
    assert_eq!(bench.item(&id).await, settled);
    assert_eq!(settled.output, output);
    assert!(bench.ledger.store().steps(id).await.unwrap().is_empty());
}

async fn an_outage_loses_no_result(bench: Bench) {
    let orders: Vec<Order> = (0..20).map(Order::new).collect();
    let added = bench.ledger.enqueue_many(&orders).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    for verb in ["exchange", "claim", "settle", "heartbeat", "changed", "recover", "prune", "define"] {
        bench.outage.fail(verb, 3);
    }
    let worker = bench.worker().concurrency(4).handle(move |_: Order, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let running = Running::start(worker);
    for added in &added {
        bench.until(&added.id, State::Succeeded).await;
    }
    running.end().await;
    assert_eq!(runs.load(Ordering::SeqCst), 20, "each ran once");
}

async fn a_ledger_that_is_out_of_reach_at_the_start_is_waited_for(bench: Bench) {
    bench.outage.fail("claim", 5);
    bench.outage.fail("define", 1);
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |order: Order, _: Context| {
        let sender = sender.clone();
        async move { Ok(sender.send(order.number)?) }
    });
    let running = Running::start(worker);
    timely(bench.outage.until_called("define", 2)).await;
    bench.ledger.enqueue(&Order::new(1)).await.unwrap();
    assert_eq!(timely(ran.recv()).await, Some(1));
    running.end().await;
}

async fn an_outage_of_changes_is_bridged_by_looking(bench: Bench) {
    bench.outage.fail("changed", usize::MAX);
    let (sender, mut ran) = mpsc::unbounded_channel();
    let worker = bench.worker().handle(move |order: Order, _: Context| {
        let sender = sender.clone();
        async move { Ok(sender.send(order.number)?) }
    });
    let running = Running::start(worker);
    timely(bench.outage.until_called("claim", 2)).await;
    bench.ledger.enqueue(&Order::new(1)).await.unwrap();
    assert_eq!(timely(ran.recv()).await, Some(1));
    running.end().await;
}

async fn long_jobs_keep_their_leases(bench: Bench) {
    let id = bench.ledger.enqueue(&Brief).await.unwrap().id;
    let (sender, mut began) = mpsc::unbounded_channel();
    let (end, ended) = tokio::sync::watch::channel(false);
    let worker = bench.worker().handle(move |_: Brief, context: Context| {
        let (sender, mut ended) = (sender.clone(), ended.clone());
        async move {
            sender.send(context.fence())?;
            ended.wait_for(|ended| *ended).await?;
            Ok(())
        }
    });
    let running = Running::start(worker);
    assert_eq!(timely(began.recv()).await, Some(1));
    for _ in 0..10 {
        // Two thirds of a lease at a time.
        bench.clock.advance_ms(60);
        timely(bench.outage.until_called_again("heartbeat", 2)).await;
    }
    end.send(true).unwrap();
    running.end().await;
    assert!(began.recv().await.is_none(), "nobody else got it");
    let item = bench.item(&id).await;
    assert_eq!((item.fence, item.attempts, bench.state(&id).await), (Some(1), 1, State::Succeeded));
}
