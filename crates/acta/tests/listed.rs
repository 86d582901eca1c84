//! Workers show themselves in the ledger.

mod common;

use std::sync::Arc;
use std::time::Duration;

use acta::{Context, Worker};
use acta_core::store::QueueFilter;
use acta_core::vitals::{Activity, WorkerView};
use common::{Bench, Order, Running, timely};
use tokio::sync::{Semaphore, mpsc};

on_every_store! {
    a_worker_is_listed_while_it_works_and_gone_when_it_has_ended,
    an_idle_worker_goes_on_showing_itself_and_a_dropped_one_is_lost,
    a_worker_of_a_queue_that_is_not_there_yet_is_listed_once_it_is,
    minutes_tell_what_workers_do,
}

async fn activity(bench: &Bench) -> Activity {
    let overview = bench.ledger.store().queues(QueueFilter::closely("orders".parse().unwrap())).await.unwrap();
    overview.activity.into_values().next().unwrap()
}

async fn workers(bench: &Bench) -> Vec<WorkerView> {
    activity(bench).await.workers
}

/// The workers, once they are as wanted; looks after every heartbeat that is answered.
async fn until(bench: &Bench, is_wanted: impl Fn(&[WorkerView]) -> bool) -> Vec<WorkerView> {
    timely(async {
        loop {
            let beats = bench.outage.calls("heartbeat");
            let workers = workers(bench).await;
            if is_wanted(&workers) {
                return workers;
            }
            bench.outage.until_called("heartbeat", beats + 1).await;
        }
    })
    .await
}

/// A worker whose handlers tell that they run, and wait for a permit.
fn patient(bench: &Bench, gate: &Arc<Semaphore>) -> (Worker, mpsc::UnboundedReceiver<u32>) {
    let (sender, began) = mpsc::unbounded_channel();
    let gate = Arc::clone(gate);
    let worker = bench.worker().handle(move |order: Order, _: Context| {
        let (sender, gate) = (sender.clone(), Arc::clone(&gate));
        async move {
            sender.send(order.number).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(())
        }
    });
    (worker, began)
}

async fn a_worker_is_listed_while_it_works_and_gone_when_it_has_ended(bench: Bench) {
    let gate = Arc::new(Semaphore::new(0));
    bench.ledger.enqueue_many(&[Order::new(1), Order::new(2)]).await.unwrap();
    let (worker, mut began) = patient(&bench, &gate);
    // So that what it runs is told soon.
    let worker = worker.named("robot-7").version("4.5.6").concurrency(3).heartbeat(Duration::from_millis(20));
    let running = Running::start(worker);
    timely(began.recv()).await.unwrap();
    timely(began.recv()).await.unwrap();
    let view = until(&bench, |workers| workers.iter().any(|view| view.worker.card.running == 2)).await.remove(0);
    let card = &view.worker.card;
    assert_eq!((card.robot.as_str(), card.version.as_str(), card.concurrency), ("robot-7", "4.5.6", 3));
    assert_eq!((card.pid, card.host.as_str().is_empty()), (std::process::id(), false));
    assert_eq!((view.worker.started_at, view.worker.seen_at, view.lost), (Bench::at(0), Bench::at(0), false));
    bench.pass(10);
    let view = until(&bench, |workers| workers[0].worker.seen_at > Bench::at(0)).await.remove(0);
    assert_eq!((view.worker.started_at, view.worker.seen_at), (Bench::at(0), Bench::at(10)), "by the ledger's clock");
    let (other, _) = patient(&bench, &gate);
    let other = Running::start(other);
    assert_ne!(until(&bench, |workers| workers.len() == 2).await[1].worker.card.id, *id_of(&view), "each is another");
    gate.add_permits(2);
    running.end().await;
    assert_eq!(workers(&bench).await.len(), 1);
    other.end().await;
    assert!(workers(&bench).await.is_empty());
}

fn id_of(view: &WorkerView) -> &acta_core::Label {
    &view.worker.card.id
}

async fn an_idle_worker_goes_on_showing_itself_and_a_dropped_one_is_lost(bench: Bench) {
    bench.ledger.enqueue(&Order::new(1)).await.unwrap();
    let gate = Arc::new(Semaphore::new(1));
    let (worker, mut began) = patient(&bench, &gate);
    let task = tokio::spawn(worker.run(std::future::pending()));
    timely(began.recv()).await.unwrap();
    until(&bench, |workers| workers.len() == 1).await;
    if tokio::runtime::Handle::current().metrics().num_workers() == 1 {
        // In a time that jumps.
        bench.pass(60);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(workers(&bench).await[0].worker.seen_at, Bench::at(60), "idle as it is");
        tokio::time::sleep(Duration::from_secs(28)).await;
        bench.pass(1);
        assert_eq!(workers(&bench).await[0].worker.seen_at, Bench::at(60), "but seldom");
    }
    task.abort();
    let seen_at = workers(&bench).await[0].worker.seen_at;
    bench.pass(90 - Bench::at(0).since_ms(seen_at) / 1_000);
    bench.pass(1);
    let view = workers(&bench).await.remove(0);
    assert!(view.lost, "{view:?}");
}

async fn a_worker_of_a_queue_that_is_not_there_yet_is_listed_once_it_is(bench: Bench) {
    let gate = Arc::new(Semaphore::new(1));
    let (worker, mut began) = patient(&bench, &gate);
    let running = Running::start(worker);
    // It has tried in vain.
    timely(bench.outage.until_called("heartbeat", 1)).await;
    bench.ledger.enqueue(&Order::new(1)).await.unwrap();
    timely(began.recv()).await.unwrap();
    until(&bench, |workers| workers.len() == 1).await;
    running.end().await;
}

async fn minutes_tell_what_workers_do(bench: Bench) {
    let gate = Arc::new(Semaphore::new(100));
    let (worker, mut began) = patient(&bench, &gate);
    let orders: Vec<Order> = (0..100).map(Order::new).collect();
    bench.ledger.enqueue_many(&orders).await.unwrap();
    let running = Running::start(worker);
    for _ in 0..100 {
        timely(began.recv()).await.unwrap();
    }
    running.end().await;
    let flow = activity(&bench).await.over(0, 1);
    assert_eq!((flow.added, flow.claimed, flow.succeeded, flow.failed), (100, 100, 100, 0));
}
