//! A job: what it is, where it stands, and what is rarely there.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::JobId;
use crate::json::Json;
use crate::name::{Label, Name};
use crate::policy::{Backoff, QueueSettings, RETENTION, Span};
use crate::state::State;
use crate::traceparent::Traceparent;
use crate::transition::{Effect, Step};

/// A whole job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its row number in the ledger.
    pub row: u64,
    /// What never changes.
    pub identity: Identity,
    /// What every step changes.
    pub standing: Standing,
    /// What few jobs have.
    pub detail: Detail,
}

/// What a job is; written once, at the enqueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The public id.
    pub id: JobId,
    /// The job definition.
    pub name: Option<Name>,
    /// Its lane.
    pub lane: Option<Label>,
    /// The business key.
    pub key: Option<Label>,
    /// The deduplication key.
    pub dedup_key: Option<Label>,
    /// What the job is to work on.
    pub payload: Json,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Its own back-off, where it has one.
    pub backoff: Option<Backoff>,
    /// Its own lease, where it has one.
    pub lease: Option<Span>,
    /// The trace that it belongs to.
    pub traceparent: Option<Traceparent>,
}

/// The number of a lane in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneNumber(pub u64);

/// What a count is kept of: a state, with business failures apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tally(pub State, pub bool);

/// How a job holds its deduplication key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeyHold {
    /// It has none.
    #[default]
    None,
    /// As long as the job or its tombstone lives.
    Kept,
    /// Until the job ends.
    WhileLive,
}

/// Where a job stands: the narrow row that every step reads and writes.
#[expect(clippy::struct_excessive_bools, reason = "each flag is set and cleared apart from the others")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// Its place in the order of its namespace.
    pub place: u64,
    /// 0 to 100, higher first.
    pub priority: u8,
    /// Its lane, while it is alive.
    pub lane: Option<LaneNumber>,
    /// A mirror of the lane's pause, kept on its head alone.
    pub lane_paused: bool,
    /// Held by an operator.
    pub paused: bool,
    /// The holder is asked to stop.
    pub cancel_requested: bool,
    /// Claims that count.
    pub attempts: u32,
    /// How many may count.
    pub max_attempts: u32,
    /// Whether a failure may go back to the queue.
    pub retryable: bool,
    /// How often it was ever claimed.
    pub fence: u64,
    /// Leases lost in a row.
    pub lost_leases: u32,
    /// No candidate before.
    pub run_at: Option<Timestamp>,
    /// Ended if not claimed by then.
    pub expires_at: Option<Timestamp>,
    /// The deadline of its wait.
    pub wait_until: Option<Timestamp>,
    /// Until when its holder has it.
    pub lease_expires_at: Option<Timestamp>,
    /// Who claimed it last.
    pub claimed_by: Option<Label>,
    /// When.
    pub claimed_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How long it is kept after its end, where its definition says so.
    pub retention: Option<Span>,
    /// From when on it may be pruned.
    pub prune_at: Option<Timestamp>,
    /// A failure of this job was a business exception.
    pub business: bool,
    /// How its last claim was settled, until the next one.
    pub settled: Option<Settled>,
    /// How it holds its deduplication key.
    pub key_hold: KeyHold,
    /// Whether it has a [`Detail`].
    pub has_detail: bool,
}

/// The answer to a settle, kept so that the same settle again gets the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// A digest of the outcome, in 60 bits.
    pub mark: i64,
    /// The state that the settle led to.
    pub state: State,
    /// When the job is a candidate again, where the settle set it.
    pub run_at: Option<Timestamp>,
}

/// What few jobs have, in a row of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// The signal that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Name>,
    /// What its claimant last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// When its claimant said that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Its last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<Exception>,
}

/// Which kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// An expected rejection by the domain.
    Business,
    /// Trouble with infrastructure or program.
    System,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exception {
    /// Business or system.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// More, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

/// What the effects of a step may need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) now: Timestamp,
    pub(crate) robot: Option<&'a Label>,
    pub(crate) lease_expires_at: Option<Timestamp>,
    pub(crate) run_at: Option<Timestamp>,
    pub(crate) wait_until: Option<Timestamp>,
    pub(crate) priority: u8,
    pub(crate) place: u64,
}

impl Facts<'_> {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            now,
            robot: None,
            lease_expires_at: None,
            run_at: None,
            wait_until: None,
            priority: crate::policy::DEFAULT_PRIORITY,
            place: 0,
        }
    }
}

impl Standing {
    /// The instant at which time alone changes something: a lapse, a due `runAt`, a deadline, an expiry.
    pub fn due_at(&self) -> Option<Timestamp> {
        match (self.moves_at().or(self.lease_expires_at), self.expires_by()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The instant at which time makes a candidate of it: a scheduled job's `runAt`, a wait's deadline.
    pub fn moves_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Scheduled => self.run_at,
            State::Waiting => self.wait_until,
            State::Blocked
            | State::Ready
            | State::Claimed
            | State::Running
            | State::Succeeded
            | State::Failed
            | State::Cancelled => None,
        }
    }

    /// The instant at which it expires, while it still may.
    pub fn expires_by(&self) -> Option<Timestamp> {
        self.expires_at.filter(|_| self.may_expire())
    }

    /// Whether it has expired, and waits for a claim or recover to end it.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_by().is_some_and(|at| at <= now)
    }

    /// Whether `expiresAt` still ends it: alive and never claimed.
    pub fn may_expire(&self) -> bool {
        self.fence == 0 && !self.state.is_final()
    }

    /// Not blocked and not held, but only somebody's act, not time, can make it a candidate.
    pub fn is_aside(&self) -> bool {
        match self.state {
            State::Ready | State::Scheduled => self.paused || self.lane_paused,
            State::Waiting => self.paused || self.lane_paused || self.wait_until.is_none(),
            State::Blocked | State::Claimed | State::Running | State::Succeeded | State::Failed | State::Cancelled => {
                false
            }
        }
    }

    /// From when on it may be pruned after an end at `ended`: its own retention, else its queue's, else the default.
    pub fn pruned_from(&self, settings: &QueueSettings, ended: Timestamp) -> Timestamp {
        let retention = self.retention.or(settings.retention).unwrap_or(RETENTION);
        ended.plus_ms(retention.as_millis())
    }

    /// What it counts as: its state, with business failures apart.
    pub fn tally(&self) -> Tally {
        Tally(self.state, self.business && self.state == State::Failed)
    }

    /// Whether a claim may take it.
    pub fn is_candidate(&self) -> bool {
        self.state == State::Ready && !self.is_aside()
    }

    /// Whether a claim may take it, now or once an instant has come, without anybody's act.
    pub fn may_be_claimed(&self) -> bool {
        !self.is_aside() && (self.state == State::Ready || self.moves_at().is_some())
    }

    /// Whether its holder's lease has run out.
    pub fn is_lapsed(&self, now: Timestamp) -> bool {
        self.state.is_held() && self.lease_expires_at.is_some_and(|until| until <= now)
    }

    /// Carries out a step of [`crate::transition`].
    pub(crate) fn apply(&mut self, step: Step, facts: &Facts<'_>) {
        self.state = step.to;
        for effect in step.effects {
            self.carry_out(*effect, facts);
        }
    }

    fn carry_out(&mut self, effect: Effect, facts: &Facts<'_>) {
        match effect {
            Effect::CountAttempt => self.attempts = self.attempts.saturating_add(1),
            Effect::ReturnAttempt => self.attempts = self.attempts.saturating_sub(1),
            Effect::RaiseFence => {
                self.fence += 1;
                self.settled = None;
            }
            Effect::StampClaim => {
                self.claimed_by = facts.robot.cloned();
                self.claimed_at = Some(facts.now);
            }
            // A lease is never shortened by its own holder.
            Effect::TakeLease => self.lease_expires_at = self.lease_expires_at.max(facts.lease_expires_at),
            Effect::EndLease => self.lease_expires_at = None,
            Effect::CountLoss => self.lost_leases = self.lost_leases.saturating_add(1),
            Effect::ForgetLosses => self.lost_leases = 0,
            Effect::SetRunAt => self.run_at = facts.run_at,
            Effect::TakeWait => self.wait_until = facts.wait_until,
            Effect::EndWait => self.wait_until = None,
            Effect::Finish => {
                self.finished_at = Some(facts.now);
                self.cancel_requested = false;
                self.paused = false;
            }
            // Done by the rules, which know the lane.
            Effect::PromoteNext => {}
            Effect::RequestCancel => self.cancel_requested = true,
            Effect::Hold => self.paused = true,
            Effect::Unhold => self.paused = false,
            Effect::SetPriority => self.priority = facts.priority,
            Effect::Renew => {
                self.place = facts.place;
                self.attempts = 0;
                self.lost_leases = 0;
                self.run_at = None;
                self.expires_at = None;
                self.finished_at = None;
                self.prune_at = None;
                self.business = false;
            }
        }
    }
}
