//! What carries a worker's decisions out: calls, handlers, timers.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use acta_core::store::{Claim, ClaimOutcome, Claimant, Heartbeats, Nothing, Outcome, SettleAnswer, Settlement, Wave};
use acta_core::worker::{Action, Event, Exchanged, Note, Settings, Ticket, Word, Worker};
use acta_core::{Error, Label, Name, Namespace, Random, Result};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::context::Desk;
use crate::handler::{Handlers, died, panicked};
use crate::ledger::Ledger;
use crate::maintenance;
use crate::presence::Shown;

/// What a task has brought.
enum Came {
    Event(Event),
    /// How the namespace is now.
    Seen(Result<u64>),
}

/// What a task is for, to be known should it die.
enum Errand {
    Handler(Ticket),
    Exchange(u64),
    Heartbeat,
    Watch,
}

/// How long nobody watches after a watch has failed; the worker polls meanwhile.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// Whoever hears what is noteworthy.
pub(crate) type Listener = Arc<dyn Fn(&Note) + Send + Sync>;

/// A worker at work.
pub(crate) struct Drive {
    ledger: Ledger,
    desk: Desk,
    robot: Label,
    shown: Shown,
    names: Vec<Name>,
    handlers: Handlers,
    worker: Worker,
    listener: Option<Listener>,
    random: Box<dyn Random>,
    tasks: JoinSet<Came>,
    errands: HashMap<Id, Errand>,
    /// How running handlers are told.
    words: HashMap<Ticket, watch::Sender<Option<Word>>>,
    /// The last number that stood for how the namespace is; whether somebody waits for another, and whether the last
    /// wait failed.
    seen: Option<u64>,
    is_watching: bool,
    has_failed: bool,
    /// When the worker's time began.
    start: Instant,
}

impl Drive {
    pub(crate) fn new(
        ledger: &Ledger,
        namespace: Namespace,
        (robot, version): (Label, Label),
        handlers: Handlers,
        settings: Settings,
        listener: Option<Listener>,
    ) -> Result<Self> {
        let mut random: Box<dyn Random> = Box::new(acta_store::random::system_random()?);
        let shown = Shown::new(robot.clone(), version, settings.slots, random.as_mut())?;
        Ok(Self {
            shown,
            ledger: ledger.clone(),
            desk: ledger.desk(namespace),
            robot,
            names: handlers.names(),
            handlers,
            worker: Worker::new(settings),
            listener,
            random,
            tasks: JoinSet::new(),
            errands: HashMap::new(),
            words: HashMap::new(),
            seen: None,
            is_watching: false,
            has_failed: false,
            start: Instant::now(),
        })
    }

    /// Works until the shutdown is over. Whatever still runs then is aborted.
    pub(crate) async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut is_shutting_down = false;
        let mut beside = JoinSet::new();
        let definitions = self.handlers.definitions().cloned().collect();
        beside.spawn(maintenance::register(self.ledger.clone(), definitions));
        beside.spawn(maintenance::maintain(self.desk.clone(), maintenance::Pace::new(self.random.next_u64())));
        beside.spawn(self.shown.clone().keep(self.desk.clone()));
        let mut events = vec![Event::Tick];
        loop {
            let now_ms = self.now_ms();
            let actions = self.worker.step(now_ms, events.drain(..), self.random.as_mut());
            self.shown.set_running(self.worker.running());
            for action in actions {
                if matches!(action, Action::End) {
                    self.shown.end(&self.desk).await;
                    return;
                }
                self.act(action);
            }
            if self.worker.awaits_changes() && !self.is_watching {
                self.watch();
            }
            let alarm = self.worker.alarm_ms().map(|at_ms| self.start + Duration::from_millis(at_ms));
            tokio::select! {
                Some(came) = self.tasks.join_next_with_id() => {
                    self.take(came, &mut events);
                    // Whatever else is there goes into the same decision, and its results into the same exchange.
                    while let Some(came) = self.tasks.try_join_next_with_id() {
                        self.take(came, &mut events);
                    }
                }
                () = sleep_until(alarm.unwrap_or(self.start)), if alarm.is_some() => events.push(Event::Tick),
                () = &mut shutdown, if !is_shutting_down => {
                    is_shutting_down = true;
                    tracing::info!(namespace = %self.desk.namespace, running = self.worker.running(), "shutting down");
                    events.push(Event::ShutDown);
                }
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn spawn(&mut self, errand: Errand, task: impl Future<Output = Came> + Send + 'static) {
        let id = self.tasks.spawn(task).id();
        self.errands.insert(id, errand);
    }

    /// What a task has brought, as an event. One that died is answered for.
    fn take(&mut self, came: Result<(Id, Came), JoinError>, events: &mut Vec<Event>) {
        let id = match &came {
            Ok((id, _)) => *id,
            Err(task) => task.id(),
        };
        let errand = self.errands.remove(&id);
        let came = match (came, errand) {
            (Ok((_, came)), _) => came,
            (Err(task), Some(Errand::Handler(ticket))) => Came::Event(Event::Returned(ticket, panicked(task))),
            (Err(task), Some(Errand::Exchange(number))) => {
                Came::Event(Event::Exchanged { number, answer: Err(died(&task)) })
            }
            (Err(task), Some(Errand::Heartbeat)) => Came::Event(Event::Beaten(Err(died(&task)))),
            (Err(task), Some(Errand::Watch)) => Came::Seen(Err(died(&task))),
            (Err(_), None) => return,
        };
        match came {
            Came::Event(event) => {
                if let Event::Returned(ticket, _) = &event {
                    self.words.remove(ticket);
                }
                events.push(event);
            }
            Came::Seen(answer) => {
                self.is_watching = false;
                self.has_failed = answer.is_err();
                if let Ok(number) = answer {
                    self.seen = Some(number);
                    events.push(Event::Changed);
                }
            }
        }
    }

    /// Waits for word of a change, from how the namespace was when a change was last heard of.
    fn watch(&mut self) {
        self.is_watching = true;
        let (desk, seen, has_failed) = (self.desk.clone(), self.seen, self.has_failed);
        self.spawn(Errand::Watch, async move {
            if has_failed {
                sleep(WATCH_PAUSE).await;
            }
            Came::Seen(desk.store.changed(desk.namespace, seen).await)
        });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Exchange { number, settlements, wanted } => {
                let (desk, robot, names) = (self.desk.clone(), self.robot.clone(), self.names.clone());
                self.spawn(Errand::Exchange(number), async move {
                    let answer = exchange(&desk, robot, names, settlements, wanted).await;
                    Came::Event(Event::Exchanged { number, answer })
                });
            }
            Action::Start(job) => {
                let ticket = Ticket::of(&job);
                let (sender, word) = watch::channel(None);
                self.words.insert(ticket.clone(), sender);
                let running = self.handlers.run(self.desk.clone(), *job, word);
                self.spawn(Errand::Handler(ticket.clone()), async move {
                    Came::Event(Event::Returned(ticket, running.await))
                });
            }
            Action::Tell(ticket, word) => {
                if let Some(sender) = self.words.get(&ticket) {
                    sender.send_replace(Some(word));
                }
            }
            Action::Heartbeat(tickets) => {
                let desk = self.desk.clone();
                let beats = tickets.into_iter().map(|ticket| (ticket.id, Claimant::fence(ticket.fence))).collect();
                let (namespace, shown) = (desk.namespace.clone(), self.shown.clone());
                let heartbeats = Heartbeats { namespace, beats, lease: None, worker: Some(shown.presence()) };
                self.spawn(Errand::Heartbeat, async move {
                    Came::Event(Event::Beaten(shown.send(&desk, heartbeats).await))
                });
            }
            Action::Note(note) => {
                self.tell(&note);
                if let Some(listener) = &self.listener {
                    listener(&note);
                }
            }
            Action::End => {}
        }
    }

    fn tell(&self, note: &Note) {
        let namespace = &self.desk.namespace;
        match note {
            // A job that ends as it should is counted, and costs no line.
            Note::Settled(..) => {}
            Note::Lost(ticket, fault) => {
                tracing::warn!(%namespace, job = %ticket.id, fence = ticket.fence, %fault, "lease lost while running");
            }
            Note::Dropped(ticket, outcome, fault) => {
                tracing::error!(
                    %namespace, job = %ticket.id, fence = ticket.fence, ?outcome, %fault,
                    "a result could not be settled and is dropped"
                );
                metrics::counter!("acta_results_dropped_total", "namespace" => namespace.to_string()).increment(1);
            }
            Note::Failing(fault, again_in_ms) => {
                tracing::warn!(%namespace, %fault, again_in_ms, "the ledger does not answer; trying again");
            }
            Note::Recovered => tracing::info!(%namespace, "the ledger answers again"),
            Note::Abandoned(ticket) => {
                tracing::warn!(%namespace, job = %ticket.id, "its handler did not stop in time; the lease will lapse");
            }
        }
    }
}

/// One call: settles these and claims so many.
async fn exchange(
    desk: &Desk,
    robot: Label,
    names: Vec<Name>,
    settlements: Vec<(Ticket, Outcome)>,
    wanted: usize,
) -> Result<Exchanged> {
    let Desk { store, namespace, .. } = desk;
    let settle = |(ticket, outcome): (Ticket, Outcome)| Settlement {
        id: ticket.id,
        claimant: Claimant::fence(ticket.fence),
        outcome,
    };
    let settlements: Vec<Settlement> = settlements.into_iter().map(settle).collect();
    let wave = Wave { namespace: namespace.clone(), settlements };
    if wanted == 0 {
        let settled: Vec<Result<SettleAnswer, Error>> = store.settle(wave).await?;
        return Ok(Exchanged { settled, claimed: Vec::new(), next_in_ms: None });
    }
    let claim = Claim { count: wanted, names: Some(names), why: true, ..Claim::one(namespace.clone(), robot) };
    let (settled, answer) = if wave.settlements.is_empty() {
        (Vec::new(), store.claim(claim).await?)
    } else {
        store.exchange(wave, claim).await?
    };
    // Both instants are of the ledger's clock; this machine's may show another time.
    let until =
        |Nothing { at, next_at, .. }: Nothing| next_at.map(|next| u64::try_from(next.since_ms(at)).unwrap_or_default());
    let (claimed, next_in_ms) = match answer.outcome {
        ClaimOutcome::Claimed(jobs) => (jobs, None),
        ClaimOutcome::Nothing(why) => (Vec::new(), why.and_then(until)),
        ClaimOutcome::Mismatch { .. } => (Vec::new(), None),
    };
    Ok(Exchanged { settled, claimed, next_in_ms })
}
