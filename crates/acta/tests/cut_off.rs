//! A worker whose network is cut for longer than its lease, on a real server: somebody else takes over, and nothing that the first one
//! does when it is back changes anything of the second run.

use std::time::Duration;

use acta::{Context, Job, JobError, Ledger, StopReason, Worker};
use acta_core::store::{Beat, Claim, ClaimOutcome, Claimant, Heartbeats, News, Outcome, Report, Settlement, Wave};
use acta_core::{Error, Item, JobId, Json, Label, Namespace};
use acta_testkit::postgres::{Database, Server};
use acta_testkit::proxy::Proxy;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

#[derive(Serialize, Deserialize)]
struct Charge {
    order: u32,
}

impl Job for Charge {
    const NAME: &'static str = "charge";
    const QUEUE: &'static str = "shop";
    const LEASE: Option<Duration> = Some(Duration::from_secs(2));
}

/// How the network comes back.
#[derive(Clone, Copy, Debug)]
enum Back {
    /// The connections have lived on.
    Alive,
    /// They are gone.
    Torn,
}

#[test]
fn a_worker_that_is_cut_off_is_fenced_when_its_connections_come_back() {
    run(Back::Alive);
}

#[test]
fn a_worker_that_is_cut_off_is_fenced_when_it_has_to_connect_anew() {
    run(Back::Torn);
}

fn run(back: Back) {
    let database = Database::new(Server::shared_url(), None);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_mins(2), cut_off(&database.url(), back)).await.expect("it goes on");
    });
}

fn queue() -> Namespace {
    Charge::QUEUE.parse().unwrap()
}

async fn item(ledger: &Ledger, id: &JobId) -> Item {
    let found = ledger.job(id).await.unwrap();
    Item::new(&found.namespace, &found.job)
}

/// Claims as another robot, as soon as the lease of the first one has lapsed.
async fn take_over(ledger: &Ledger) -> acta_core::Job {
    loop {
        let claim = Claim::one(queue(), Label::new("robot", "second").unwrap());
        if let ClaimOutcome::Claimed(jobs) = ledger.store().claim(claim).await.unwrap().outcome {
            return jobs.into_iter().next().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn cut_off(url: &str, back: Back) {
    let port = url.split(['/', ':']).filter_map(|part| part.parse().ok()).next_back().expect("a port");
    let proxy = Proxy::start(port).await;
    let through = url.replacen(&format!(":{port}"), &format!(":{}", proxy.port()), 1);
    let (near, far) = (Ledger::open(url).await.unwrap(), Ledger::open(&through).await.unwrap());

    let (sender, mut said) = mpsc::unbounded_channel();
    let (go, gate) = watch::channel(false);
    let handler = move |charge: Charge, context: Context| {
        let (sender, mut gate) = (sender.clone(), gate.clone());
        async move {
            if charge.order > 1 {
                sender.send(format!("order {}", charge.order))?;
                return Ok("in peace");
            }
            sender.send("begins".to_owned())?;
            gate.wait_for(|is_open| *is_open).await?;
            let late = context.step("charge", async || Ok(1)).await.unwrap_err();
            sender.send(format!("{late:?}"))?;
            sender.send(format!("{:?}", context.cancelled().await))?;
            Ok::<_, JobError>("the late one's")
        }
    };
    let (stop, stopped) = oneshot::channel::<()>();
    // Without a free slot it does not take its own job over.
    let worker = Worker::new(&far, Charge::QUEUE).named("first").concurrency(1).handle(handler);
    let working = tokio::spawn(worker.run(async { drop(stopped.await) }));

    let id = near.enqueue(&Charge { order: 1 }).await.unwrap().id;
    assert_eq!(said.recv().await.unwrap(), "begins");
    proxy.silence();
    let taken = take_over(&near).await;
    assert_eq!((&taken.identity.id, taken.standing.fence, taken.standing.attempts), (&id, 2, 2));
    let during = item(&near, &id).await;

    match back {
        Back::Alive => proxy.resume(),
        Back::Torn => proxy.tear(),
    }
    go.send(true).unwrap();
    let late = said.recv().await.unwrap();
    assert!(late.contains("lease lost"), "{late}");
    assert_eq!(said.recv().await.unwrap(), format!("{:?}", StopReason::Lost));
    // Whoever shows the old fence is refused, whatever it asks for.
    let first = || Claimant { fence: Some(1), robot: Some(Label::new("robot", "first").unwrap()) };
    let beats = Heartbeats { namespace: queue(), beats: vec![(id.clone(), first())], lease: None, worker: None };
    let beat: Result<Beat, Error> = far.store().heartbeat(beats).await.unwrap().remove(0);
    let settlement =
        Settlement { id: id.clone(), claimant: first(), outcome: Outcome::Succeeded(Some(Json::new("1").unwrap())) };
    let wave = Wave { namespace: queue(), settlements: vec![settlement] };
    let settled = far.store().settle(wave).await.unwrap().remove(0).map(|_| ());
    let charged = News::Step { name: "charge".into(), value: Json::new("1").unwrap() };
    let report = Report { namespace: queue(), id: id.clone(), claimant: first(), news: charged };
    let kept = far.store().report(report).await;
    for refused in [beat.map(|_| ()), settled, kept] {
        assert!(matches!(refused, Err(Error::LeaseLost { .. })), "{refused:?}");
    }

    // It works on, without being restarted.
    near.enqueue(&Charge { order: 2 }).await.unwrap();
    assert_eq!(said.recv().await.unwrap(), "order 2");
    assert_eq!(item(&near, &id).await, during, "the second run is as it was");
    assert!(near.store().steps(id.clone()).await.unwrap().is_empty());
    let output = Json::new("\"the present one's\"").unwrap();
    let settlement = Settlement {
        id: id.clone(),
        claimant: Claimant::fence(taken.standing.fence),
        outcome: Outcome::Succeeded(Some(output.clone())),
    };
    near.store()
        .settle(Wave { namespace: queue(), settlements: vec![settlement] })
        .await
        .unwrap()
        .remove(0)
        .expect("the lease is the second one's");
    assert_eq!(item(&near, &id).await.output, Some(output));
    drop(stop);
    working.await.unwrap().unwrap();
}
