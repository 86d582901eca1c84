//! How a worker shows the ledger that it is there: with each heartbeat of its jobs, now and then while it has none, and by a last
//! word when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use acta_core::policy::WORKER_PAUSE;
use acta_core::store::{Beat, Heartbeats};
use acta_core::vitals::{Card, Presence};
use acta_core::{Label, Random, Result};
use tokio::sync::RwLock;
use tokio::time::{Instant, sleep_until, timeout};

use crate::context::Desk;

/// How soon it shows itself again where it was not taken note of, at first.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How long its end waits for the last word to be heard.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a worker shows. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shown {
    card: Card,
    running: Arc<AtomicU32>,
    /// Milliseconds since `start` when it was last taken note of; 0 if it never was.
    heard_ms: Arc<AtomicU64>,
    /// Read by heartbeats while they are under way; its end waits for them.
    under_way: Arc<RwLock<()>>,
    start: Instant,
}

impl Shown {
    pub(crate) fn new(robot: Label, version: Label, concurrency: usize, random: &mut dyn Random) -> Result<Self> {
        let card = Card {
            id: Label::new("worker", &format!("{:016x}{:016x}", random.next_u64(), random.next_u64()))?,
            robot,
            host: Label::new("host", &host())?,
            pid: std::process::id(),
            version,
            concurrency: u32::try_from(concurrency).unwrap_or(u32::MAX),
            running: 0,
        };
        Ok(Self {
            card,
            running: Arc::default(),
            heard_ms: Arc::default(),
            under_way: Arc::default(),
            start: Instant::now(),
        })
    }

    /// How many jobs it runs now.
    pub(crate) fn set_running(&self, running: usize) {
        self.running.store(u32::try_from(running).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// What goes with a heartbeat.
    pub(crate) fn presence(&self) -> Presence {
        Presence::Here(Card { running: self.running.load(Ordering::Relaxed), ..self.card.clone() })
    }

    /// Sends a heartbeat that shows it.
    pub(crate) async fn send(&self, desk: &Desk, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        let _guard = self.under_way.read().await;
        let answer = desk.store.heartbeat(beats).await;
        if answer.is_ok() {
            let now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.heard_ms.store(now_ms.max(1), Ordering::Relaxed);
        }
        answer
    }

    /// When it is to show itself again, if it was ever taken note of.
    fn due(&self) -> Option<Instant> {
        let heard_ms = self.heard_ms.load(Ordering::Relaxed);
        (heard_ms > 0).then(|| self.start + Duration::from_millis(heard_ms) + WORKER_PAUSE.to_std())
    }

    /// Shows it now and then, until this is dropped. A heartbeat of its jobs will do.
    pub(crate) async fn keep(self, desk: Desk) {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(due) = self.due()
                && due > Instant::now()
            {
                sleep_until(due).await;
                continue;
            }
            if self.send(&desk, nothing_but(&desk, self.presence())).await.is_ok() {
                pause = FIRST_PAUSE;
                continue;
            }
            // A queue that is not there yet, a ledger out of reach: whoever exchanges jobs with it tells that.
            sleep_until(Instant::now() + pause).await;
            pause = (pause * 2).min(WORKER_PAUSE.to_std());
        }
    }

    /// Says that it ends. If nobody hears that, it is lost after a while.
    pub(crate) async fn end(&self, desk: &Desk) {
        let last_word = async {
            // It must not be shown again behind it.
            let _guard = self.under_way.write().await;
            desk.store.heartbeat(nothing_but(desk, Presence::Gone(self.card.id.clone()))).await
        };
        let _ = timeout(PATIENCE, last_word).await;
    }
}

fn nothing_but(desk: &Desk, worker: Presence) -> Heartbeats {
    Heartbeats { namespace: desk.namespace.clone(), beats: Vec::new(), lease: None, worker: Some(worker) }
}

/// This machine's name, as far as it can be shown.
pub(crate) fn host() -> String {
    let machine = rustix::system::uname();
    let name = machine.nodename().to_string_lossy();
    let printable: String = name.chars().filter(|character| !character.is_control()).take(100).collect();
    if printable.is_empty() { "unknown".into() } else { printable }
}
