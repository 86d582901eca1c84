//! The worker's decisions on random walks: whatever happens in whatever order, some things never do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::tests::{job, unavailable};
use super::*;
use crate::clock::Timestamp;
use crate::job::FailureKind;
use crate::random::Seeded;
use crate::state::State;
use crate::store::Failure;

/// What happens next. The numbers choose among what is there.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(u64),
    Changed,
    /// An exchange is answered; so many jobs are there to be claimed.
    Answer(usize),
    Fail {
        is_unavailable: bool,
    },
    /// Heartbeats are answered: the bits say which lease was lost, and which cancel is asked for.
    Beat {
        lost: u8,
        cancelled: u8,
    },
    FailBeat,
    Return {
        which: usize,
        fails: bool,
    },
    ShutDown,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..20_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Changed),
        6 => (0..6_usize).prop_map(Step::Answer),
        2 => any::<bool>().prop_map(|is_unavailable| Step::Fail { is_unavailable }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(lost, cancelled)| Step::Beat { lost: lost & cancelled, cancelled }),
        1 => Just(Step::FailBeat),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(which, fails)| Step::Return { which, fails }),
        1 => (0..8_u8).prop_map(|dice| if dice == 0 { Step::ShutDown } else { Step::Changed }),
    ]
}

/// The world around a worker, which keeps count.
struct World {
    worker: Worker,
    settings: Settings,
    now_ms: u64,
    random: Seeded,
    next_job: u64,
    flights: BTreeMap<u64, (Vec<Ticket>, usize)>,
    beats: Option<Vec<Ticket>>,
    running: BTreeSet<Ticket>,
    /// What each claim came to in the end.
    fates: BTreeMap<Ticket, Vec<&'static str>>,
    is_shutting_down: bool,
    has_ended: bool,
    /// The shutdown's time was over before the handlers began to return.
    is_late: bool,
}

impl World {
    fn new(settings: Settings) -> Self {
        Self {
            worker: Worker::new(settings),
            settings,
            now_ms: 0,
            random: Seeded::new(1),
            next_job: 0,
            flights: BTreeMap::new(),
            beats: None,
            running: BTreeSet::new(),
            fates: BTreeMap::new(),
            is_shutting_down: false,
            has_ended: false,
            is_late: false,
        }
    }

    fn fate(&mut self, ticket: &Ticket, fate: &'static str) {
        self.fates.entry(ticket.clone()).or_default().push(fate);
    }

    fn on(&mut self, event: Event) {
        let actions = self.worker.step(self.now_ms, [event], &mut self.random);
        for action in actions {
            assert!(!self.has_ended, "nothing after the end: {action:?}");
            self.take(action);
        }
        let coming: usize = self.flights.values().map(|(_, wanted)| wanted).sum();
        assert!(self.running.len() + coming <= self.settings.slots, "never more than the slots");
        assert!(self.flights.len() <= self.settings.flights, "never more exchanges at once");
        if !self.has_ended && self.flights.is_empty() && self.beats.is_none() && self.running.is_empty() {
            assert!(self.worker.alarm_ms().is_some(), "it never waits for nothing");
        }
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Exchange { number, settlements, wanted } => {
                assert!(wanted == 0 || !self.is_shutting_down, "no claim after the shutdown began");
                assert!(wanted > 0 || !settlements.is_empty(), "no call for nothing");
                let tickets: Vec<Ticket> = settlements.into_iter().map(|(ticket, _)| ticket).collect();
                assert!(
                    tickets.iter().all(|ticket| !self.running.contains(ticket)),
                    "only what has returned is settled"
                );
                assert!(self.flights.insert(number, (tickets, wanted)).is_none());
            }
            Action::Start(job) => assert!(self.running.insert(Ticket::of(&job)), "started once"),
            Action::Tell(ticket, _) => assert!(self.running.contains(&ticket), "only what runs is told"),
            Action::Heartbeat(tickets) => {
                assert!(self.beats.is_none() && !tickets.is_empty(), "one heartbeat at a time, of something");
                self.beats = Some(tickets);
            }
            Action::Note(Note::Settled(ticket, ..)) => self.fate(&ticket, "settled"),
            Action::Note(Note::Lost(ticket, _)) => self.fate(&ticket, "lost"),
            Action::Note(Note::Dropped(ticket, ..)) => self.fate(&ticket, "dropped"),
            Action::Note(Note::Abandoned(ticket)) => self.fate(&ticket, "abandoned"),
            Action::Note(Note::Failing(..) | Note::Recovered) => {}
            Action::End => self.has_ended = true,
        }
    }

    fn answer(&mut self, there: usize) {
        let Some((number, (tickets, wanted))) = self.flights.pop_first() else { return };
        let mut claimed = Vec::new();
        for _ in 0..there.min(wanted) {
            self.next_job += 1;
            let job = job(&format!("job-{}", self.next_job), 1);
            self.fates.insert(Ticket::of(&job), Vec::new());
            claimed.push(job);
        }
        let done = |_: &Ticket| Ok(SettleAnswer { state: State::Succeeded, run_at: None });
        let settled = tickets.iter().map(done).collect();
        self.on(Event::Exchanged { number, answer: Ok(Exchanged { settled, claimed, next_in_ms: None }) });
    }

    fn beat(&mut self, lost: u8, cancelled: u8) {
        let Some(tickets) = self.beats.take() else { return };
        let answer = |(index, ticket): (usize, &Ticket)| {
            let is_set = |bits: u8| bits & (1 << (index % 8)) != 0;
            if is_set(lost) {
                return Err(Error::not_found("job", ticket.id.as_str()));
            }
            Ok(Beat { lease_expires_at: Timestamp::MAX, cancel_requested: is_set(cancelled) })
        };
        let answers = tickets.iter().enumerate().map(answer).collect();
        self.on(Event::Beaten(Ok(answers)));
    }

    fn give_back(&mut self, which: usize, fails: bool) {
        if self.running.is_empty() {
            return;
        }
        let Some(ticket) = self.running.iter().nth(which % self.running.len()).cloned() else { return };
        self.running.remove(&ticket);
        let failure = Outcome::Failed(Failure::new(FailureKind::System, "no"));
        self.on(Event::Returned(ticket, if fails { failure } else { Outcome::Succeeded(None) }));
    }

    fn walk(&mut self, step: Step) {
        match step {
            Step::Pass(millis) => {
                self.now_ms += millis;
                self.on(Event::Tick);
            }
            Step::Changed => self.on(Event::Changed),
            Step::Answer(there) => self.answer(there),
            Step::Fail { is_unavailable } => {
                let Some((number, _)) = self.flights.pop_first() else { return };
                let refusal = Error::Closed { place: "the ledger".into(), why: "was moved".into() };
                let fault = if is_unavailable { unavailable() } else { refusal };
                self.on(Event::Exchanged { number, answer: Err(fault) });
            }
            Step::Beat { lost, cancelled } => self.beat(lost, cancelled),
            Step::FailBeat => {
                if self.beats.take().is_some() {
                    self.on(Event::Beaten(Err(unavailable())));
                }
            }
            Step::Return { which, fails } => self.give_back(which, fails),
            Step::ShutDown => {
                self.is_shutting_down = true;
                self.on(Event::ShutDown);
            }
        }
    }

    /// A ledger that answers, and handlers of which only some return: the worker ends.
    fn end(&mut self, returns: bool) {
        let returns = returns && !self.has_ended;
        self.is_late = self.is_shutting_down;
        if !self.has_ended {
            self.walk(Step::ShutDown);
        }
        // Alarms may be a millisecond apart, as heartbeats may, and the longest wait is of 28 s.
        for _ in 0..40_000 {
            if self.has_ended {
                break;
            }
            self.answer(5);
            self.beat(0, 0);
            while returns && !self.running.is_empty() {
                self.give_back(0, false);
            }
            if let Some(alarm_ms) = self.worker.alarm_ms() {
                self.now_ms = self.now_ms.max(alarm_ms);
                self.on(Event::Tick);
            }
        }
        assert!(self.has_ended, "it ends");
        for (ticket, fates) in &self.fates {
            assert_eq!(fates.len(), 1, "{ticket:?} has one fate: {fates:?}");
            assert!(!returns || self.is_late || fates[0] != "abandoned", "who returns is not abandoned");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_some_things_never_do(
        slots in 1..5_usize,
        flights in 1..3_usize,
        steps in proptest::collection::vec(step(), 1..80),
        returns in any::<bool>(),
        beat_ms in prop_oneof![Just(u64::MAX), 0..20_000_u64],
        until_idle in any::<bool>(),
    ) {
        let mut world = World::new(Settings { slots, flights, beat_ms, until_idle, ..Settings::default() });
        world.on(Event::Tick);
        for step in steps {
            if world.has_ended {
                break;
            }
            world.walk(step);
        }
        world.end(returns);
    }
}
