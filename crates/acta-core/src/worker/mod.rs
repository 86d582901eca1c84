//! The decisions of a worker, pure: what happened goes in, what is to be done comes out.
//!
//! A worker claims jobs of one namespace, runs them, keeps their leases and settles them. [`Worker::step`] takes what
//! has happened ([`Event`]) and the instant, and answers what to do ([`Action`]); it calls nothing, waits for nothing
//! and reads no clock. Whatever drives it calls the store, runs the handlers, and comes again with what came of it, or
//! when [`Worker::alarm_ms`] has come.
//!
//! Instants are milliseconds from any fixed one, by a clock that only goes forward; they are compared with nothing that
//! a store says but lengths of time.

mod backoff;
mod exchange;
mod heart;
mod held;
mod shutdown;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Job;
use crate::policy::MOST_PER_CALL;
use crate::random::Random;
use crate::store::{Beat, Outcome, SettleAnswer};

use backoff::Retry;
use exchange::{Flight, Pending};
use heart::Heart;
use held::Held;
use shutdown::Phase;

/// How a worker works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many handlers run at once, 1 to 10,000.
    pub slots: usize,
    /// How many exchanges may be under way at once, at least 1.
    pub flights: usize,
    /// How long it waits, in milliseconds, before it looks for work though nobody said that there is some.
    pub poll_ms: u64,
    /// How long running jobs may go on after the shutdown began, in milliseconds.
    pub grace_ms: u64,
    /// How long handlers have to return after they were told to stop, in milliseconds.
    pub notice_ms: u64,
    /// How long a job runs without a heartbeat at the most, in milliseconds, however long its lease is: a cancel is
    /// heard of by a heartbeat.
    pub beat_ms: u64,
    /// Begin the shutdown as soon as there is nothing to claim and nothing runs.
    pub until_idle: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            slots: 10,
            flights: 1,
            poll_ms: 1_000,
            grace_ms: 25_000,
            notice_ms: 3_000,
            beat_ms: u64::MAX,
            until_idle: false,
        }
    }
}

/// One claim of one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The job.
    pub id: JobId,
    /// The fence of the claim.
    pub fence: u64,
}

impl Ticket {
    /// The claim that handed this job out.
    pub fn of(job: &Job) -> Self {
        Self { id: job.identity.id.clone(), fence: job.standing.fence }
    }
}

/// What came of an exchange.
#[derive(Debug)]
pub struct Exchanged {
    /// The answers to its settlements, in order.
    pub settled: Vec<Result<SettleAnswer>>,
    /// The jobs it claimed.
    pub claimed: Vec<Job>,
    /// In how many milliseconds there may be something to claim, where there was nothing and an instant is known.
    pub next_in_ms: Option<u64>,
}

/// What has happened.
#[derive(Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// A claim may find something.
    Changed,
    /// An exchange was answered, or was not done.
    Exchanged {
        /// Which.
        number: u64,
        /// The answer.
        answer: Result<Exchanged>,
    },
    /// The heartbeats were answered, in order, or were not done.
    Beaten(Result<Vec<Result<Beat>>>),
    /// A handler has returned.
    Returned(Ticket, Outcome),
    /// Claim no more, and end.
    ShutDown,
}

/// What to do.
#[derive(Debug)]
pub enum Action {
    /// Settle these and claim so many, in one call; only settle where `wanted` is 0.
    Exchange {
        /// Its number, to be told with the answer.
        number: u64,
        /// What to settle.
        settlements: Vec<(Ticket, Outcome)>,
        /// How many jobs to claim.
        wanted: usize,
    },
    /// Run the handler of this job.
    Start(Box<Job>),
    /// Tell a running handler.
    Tell(Ticket, Word),
    /// Extend these leases.
    Heartbeat(Vec<Ticket>),
    /// Tell whoever watches the worker.
    Note(Note),
    /// All is done: end. Handlers that still run are not waited for.
    End,
}

/// What a handler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Somebody wants the job to end.
    Cancel,
    /// The job is somebody else's now.
    Lost,
    /// The worker is shutting down and waits no longer.
    Stop,
}

/// What is worth a line in a log.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A result was settled; the job's state since then.
    Settled(Ticket, Outcome, SettleAnswer),
    /// A claim was lost while its handler ran; its result will be dropped.
    Lost(Ticket, Error),
    /// A result could not be brought home and is given up. The job is handed out again once its lease has lapsed.
    Dropped(Ticket, Outcome, Error),
    /// A call failed and is repeated after so many milliseconds.
    Failing(Error, u64),
    /// Calls are answered again.
    Recovered,
    /// The handler did not return in time; its job's lease is left to lapse.
    Abandoned(Ticket),
}

/// A worker's state.
#[derive(Debug)]
pub struct Worker {
    settings: Settings,
    phase: Phase,
    /// Handlers that run, by claim.
    held: BTreeMap<Ticket, Held>,
    /// Results that wait for the next exchange.
    pending: Vec<Pending>,
    /// Exchanges under way, by number.
    flights: BTreeMap<u64, Flight>,
    last_flight: u64,
    /// There may be something to claim.
    is_hungry: bool,
    /// When to look though nobody said anything.
    poll_at_ms: u64,
    /// After exchanges that were not done.
    outage: Retry,
    /// After claims that were refused.
    refusal: Retry,
    heart: Heart,
    actions: Vec<Action>,
}

impl Worker {
    /// A worker that has not claimed anything yet.
    pub fn new(settings: Settings) -> Self {
        let slots = settings.slots.clamp(1, MOST_PER_CALL);
        let settings = Settings { slots, flights: settings.flights.max(1), ..settings };
        Self {
            settings,
            phase: Phase::Working,
            held: BTreeMap::new(),
            pending: Vec::new(),
            flights: BTreeMap::new(),
            last_flight: 0,
            is_hungry: true,
            poll_at_ms: 0,
            outage: Retry::of_outage(),
            refusal: Retry::of_refusal(),
            heart: Heart::default(),
            actions: Vec::new(),
        }
    }

    /// Takes in what has happened up to `now_ms`, and says what to do.
    ///
    /// Events that are there together are given together: their results then travel together.
    pub fn step(
        &mut self,
        now_ms: u64,
        events: impl IntoIterator<Item = Event>,
        random: &mut dyn Random,
    ) -> Vec<Action> {
        for event in events {
            match event {
                Event::Tick => {}
                Event::Changed => self.is_hungry = true,
                Event::Exchanged { number, answer } => self.take_exchanged(now_ms, number, answer, random),
                Event::Beaten(answer) => self.take_beaten(now_ms, answer, random),
                Event::Returned(ticket, outcome) => self.take_returned(&ticket, outcome),
                Event::ShutDown => self.take_shutdown(now_ms),
            }
        }
        if self.settings.until_idle && self.is_idle() {
            self.take_shutdown(now_ms);
        }
        self.shut_down(now_ms);
        self.exchange(now_ms, random);
        self.beat(now_ms);
        std::mem::take(&mut self.actions)
    }

    /// When to come again with [`Event::Tick`], unless something happens before.
    pub fn alarm_ms(&self) -> Option<u64> {
        [self.phase_alarm_ms(), self.exchange_alarm_ms(), self.heart_alarm_ms()].into_iter().flatten().min()
    }

    /// Whether word of a change would make it claim: it has a free slot and knows of nothing to do.
    pub fn awaits_changes(&self) -> bool {
        self.phase == Phase::Working && !self.is_hungry && self.free_slots() > 0
    }

    /// Nothing runs, nothing is owed, and the last claim, which nothing has been heard of since, left nothing.
    fn is_idle(&self) -> bool {
        !self.is_hungry && self.held.is_empty() && self.pending.is_empty() && self.flights.is_empty()
    }

    /// How many handlers run.
    pub fn running(&self) -> usize {
        self.held.len()
    }

    /// How many more jobs could be run, those that are being claimed taken off.
    fn free_slots(&self) -> usize {
        let coming: usize = self.flights.values().map(|flight| flight.wanted).sum();
        self.settings.slots.saturating_sub(self.held.len() + coming)
    }

    fn note(&mut self, note: Note) {
        self.actions.push(Action::Note(note));
    }
}
