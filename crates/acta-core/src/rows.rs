//! What the rules need of a substrate: the rows of one namespace, and a few indexed looks at them.

use crate::clock::Timestamp;
use crate::error::Result;
use crate::history::Entry;
use crate::id::JobId;
use crate::job::{Detail, Identity, Job, LaneNumber, Standing, Tally};
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::policy::{Definition, QueueSettings};
use crate::state::State;
use crate::vitals::{Flow, Minute, Registered};

/// A namespace as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its path.
    pub namespace: Namespace,
    /// What it says about its jobs.
    pub settings: QueueSettings,
    /// No claims and reclaims.
    pub paused: bool,
}

/// A lane with live members, or a paused one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its number.
    pub number: LaneNumber,
    /// Its name.
    pub name: Label,
    /// How many live members it has, the head among them.
    pub live: u64,
    /// No claims and reclaims.
    pub paused: bool,
}

/// Who holds a deduplication key. One record serves live, finished and pruned jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The job's id.
    pub id: JobId,
    /// Its last state, once it is pruned.
    pub state: State,
    /// A digest of its payload.
    pub digest: i64,
    /// Until when the tombstone answers; `None` while the job's row is there.
    pub expires_at: Option<Timestamp>,
}

/// How many jobs there are of each [`Tally`].
pub type Tallies = std::collections::BTreeMap<Tally, u64>;

/// The rows of one namespace, inside one atomic operation.
///
/// A provider only finds and keeps; what it means is decided by [`crate::Rules`]. Every look is indexed: none may
/// cost more because of blocked, finished or far-off jobs.
pub trait Rows {
    /// The namespace.
    fn queue(&self) -> &Queue;
    /// Pauses or resumes the namespace.
    fn set_queue_paused(&mut self, paused: bool) -> Result<()>;
    /// A job definition that the ledger knows.
    fn definition(&mut self, name: &Name) -> Result<Option<Definition>>;
    /// The next number of the ledger, for a row or a place; never given twice.
    fn next_number(&mut self) -> Result<u64>;

    /// Adds a job that has just been made: never claimed, never ended.
    fn insert(&mut self, job: Job) -> Result<()>;
    /// The job with this id.
    fn find(&mut self, id: &JobId) -> Result<Option<(u64, Standing)>>;
    /// These will be asked for by [`Rows::find`] one by one; a provider may look them up together.
    fn prefetch(&mut self, ids: &mut dyn Iterator<Item = &JobId>) -> Result<()> {
        let _ = ids;
        Ok(())
    }
    /// What the job in `row` is.
    fn identity(&mut self, row: u64) -> Result<Identity>;
    /// Where the job in `row` stands.
    fn standing(&mut self, row: u64) -> Result<Standing>;
    /// What few jobs have.
    fn detail(&mut self, row: u64) -> Result<Detail>;
    /// Keeps where the job in `row` stands now.
    fn save(&mut self, row: u64, standing: &Standing) -> Result<()>;
    /// Keeps its detail.
    fn save_detail(&mut self, row: u64, detail: &Detail) -> Result<()>;
    /// Removes the job in `row` and all that is kept of it, but for its key.
    fn delete(&mut self, row: u64) -> Result<()>;

    /// A candidate has come up in the namespace, or an instant was set at which one will: whoever waits for one may look
    /// again once this is durable.
    fn wake(&mut self) {}

    /// Moves one job from one count to another; `None` is outside.
    fn count(&mut self, from: Option<Tally>, to: Option<Tally>);
    /// The counts, those of this operation included.
    fn tallies(&mut self) -> Result<Tallies>;
    /// Adds to what happened in a minute.
    fn flow(&mut self, minute: Timestamp, flow: Flow);
    /// The minutes from `from` on in which something happened, oldest first.
    fn minutes(&mut self, from: Timestamp) -> Result<Vec<Minute>>;
    /// Forgets minutes before `before`, the oldest first.
    fn remove_minutes(&mut self, before: Timestamp, limit: usize) -> Result<()>;

    /// The worker with this id.
    fn worker(&mut self, id: &Label) -> Result<Option<Registered>>;
    /// The workers that were seen last, the last one first, then by id.
    fn workers(&mut self, limit: usize) -> Result<Vec<Registered>>;
    /// Keeps a worker.
    fn save_worker(&mut self, worker: &Registered) -> Result<()>;
    /// Forgets a worker.
    fn remove_worker(&mut self, id: &Label) -> Result<()>;
    /// Forgets workers that were last seen before `before`.
    fn remove_workers(&mut self, before: Timestamp, limit: usize) -> Result<()>;

    /// Live jobs whose [`Standing::due_at`] is not after `now`, by that instant, then place. Where `lapses` is
    /// false, jobs with a lapsed lease whose cancel was not requested are left out; they always are while their
    /// lane is paused.
    fn due(&mut self, now: Timestamp, lapses: bool, limit: usize) -> Result<Vec<(u64, Standing)>>;
    /// Candidates at `now`, in claim order: one that has expired is none. `names` leaves out every other definition, and
    /// jobs without one.
    fn candidates(
        &mut self,
        now: Timestamp,
        names: Option<&[Name]>,
        limit: usize,
    ) -> Result<Vec<(u64, Standing, Identity)>>;
    /// Whether any head or unlaned live job has one of these names.
    fn any_head_named(&mut self, names: &[Name]) -> Result<bool>;
    /// The earliest lease end among held jobs whose lapse makes a candidate, or carries out a cancel: not those that are
    /// paused, or whose lane is.
    fn first_lapse(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>>;
    /// The earliest `runAt` or deadline of a scheduled or waiting job that is not aside.
    fn first_due(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>>;
    /// Some live jobs that are not blocked, by place; for explanations only.
    fn heads(&mut self, limit: usize) -> Result<Vec<(u64, Standing)>>;
    /// Ended jobs whose [`Standing::prune_at`] is not after `now`, oldest first.
    fn prunable(&mut self, now: Timestamp, limit: usize) -> Result<Vec<(u64, Standing)>>;

    /// The last pause or resume of a lane, or of the namespace, in the record.
    fn last_hold(&mut self, lane: Option<&Label>) -> Result<Option<Entry>>;
    /// Lanes by name, from after `after` on.
    fn lanes(&mut self, after: Option<&Label>, limit: usize) -> Result<Vec<Lane>>;
    /// The lane of this name.
    fn lane(&mut self, name: &Label) -> Result<Option<Lane>>;
    /// The lane of this number.
    fn lane_numbered(&mut self, number: LaneNumber) -> Result<Lane>;
    /// Makes a lane without members.
    fn add_lane(&mut self, name: &Label) -> Result<Lane>;
    /// Keeps a lane's count and pause.
    fn save_lane(&mut self, lane: &Lane) -> Result<()>;
    /// Forgets a lane.
    fn remove_lane(&mut self, number: LaneNumber) -> Result<()>;
    /// Its only live member that is not blocked.
    fn lane_head(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>>;
    /// Its first blocked member, by place.
    fn lane_next(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>>;

    /// Who holds the deduplication key.
    fn key(&mut self, key: &Label) -> Result<Option<KeyRecord>>;
    /// Gives the key to a record.
    fn save_key(&mut self, key: &Label, record: &KeyRecord) -> Result<()>;
    /// Frees the key.
    fn remove_key(&mut self, key: &Label) -> Result<()>;
    /// Frees keys whose tombstone has expired; how many.
    fn remove_expired_keys(&mut self, now: Timestamp, limit: usize) -> Result<usize>;

    /// Appends to the record.
    fn record(&mut self, entry: &Entry) -> Result<()>;
    /// Keeps a signal for the job in `row`.
    fn push_signal(&mut self, row: u64, name: &Name, payload: &Json) -> Result<()>;
    /// Takes the oldest kept signal of that name.
    fn pop_signal(&mut self, row: u64, name: &Name) -> Result<Option<Json>>;
    /// The results of the job's steps, by name.
    fn steps(&mut self, row: u64) -> Result<Vec<(String, Json)>>;
    /// Keeps a step's result.
    fn save_step(&mut self, row: u64, name: &str, value: &Json) -> Result<()>;
    /// Forgets the job's steps and signals.
    fn forget(&mut self, row: u64) -> Result<()>;
}
