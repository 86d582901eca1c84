//! The ledger in memory: one namespace, every verb, no I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::history::Entry;
use crate::id::JobId;
use crate::job::{Detail, Identity, Job, Standing};
use crate::job::{LaneNumber, Tally};
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::policy::{Definition, QueueSettings};
use crate::rows::{KeyRecord, Lane, Queue, Rows, Tallies};
use crate::state::State;
use crate::store::Openness;
use crate::vitals::{Flow, Minute, Registered, Vitals};

/// One namespace's jobs as plain values: the executable specification that every substrate is held to.
///
/// It answers by looking at every job, so that it shows what an index must find without having one. Call the verbs
/// through [`crate::Rules`].
#[derive(Clone, Debug)]
pub struct Book {
    contents: Contents,
    common: Common,
    ids: HashMap<JobId, u64>,
    lane_numbers: BTreeMap<Label, LaneNumber>,
    is_changed: bool,
    is_woken: bool,
    beside: Beside,
}

/// What is kept of workers and minutes, as far as the book knows it.
#[derive(Clone, Debug, Default)]
struct Beside {
    vitals: Vitals,
    /// It is all that is kept, not only what this book has added.
    is_all: bool,
    is_changed: bool,
}

/// Everything that a ledger keeps of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The namespace.
    pub queue: Queue,
    /// Its jobs, by row.
    pub jobs: BTreeMap<u64, Job>,
    /// Its lanes that have live members or are paused.
    pub lanes: BTreeMap<LaneNumber, Lane>,
    /// Its deduplication keys.
    pub keys: BTreeMap<Label, KeyRecord>,
    /// Its record, oldest first.
    pub history: Vec<Entry>,
    /// Kept signals by the row of their job, oldest first.
    pub signals: BTreeMap<u64, VecDeque<(Name, Json)>>,
    /// Results of steps and waits by the row of their job, oldest first.
    pub steps: BTreeMap<u64, Vec<(String, Json)>>,
    /// What somebody else has put there; it means nothing here, and is kept.
    pub foreign: Foreign,
}

/// Members of a namespace and of its jobs that the ledger does not know, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Of the namespace.
    pub of_queue: Vec<(String, Json)>,
    /// Of jobs, by row.
    pub of_jobs: BTreeMap<u64, Vec<(String, Json)>>,
}

impl Contents {
    /// A job that somebody has in hands, and until when.
    pub fn held(&self, now: Timestamp) -> Option<(JobId, Timestamp)> {
        self.jobs.values().find_map(|job| {
            let until = job.standing.lease_expires_at.filter(|&until| until > now)?;
            Some((job.identity.id.clone(), until))
        })
    }

    /// An empty namespace.
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            jobs: BTreeMap::new(),
            lanes: BTreeMap::new(),
            keys: BTreeMap::new(),
            history: Vec::new(),
            signals: BTreeMap::new(),
            steps: BTreeMap::new(),
            foreign: Foreign::default(),
        }
    }
}

/// What the books of one ledger have in common: a keeper of several swaps it from one to the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// The last number that was given to a row or a place.
    pub last_number: u64,
    /// Every definition's name that was used, by its lower-case form.
    names: BTreeMap<String, Name>,
    definitions: BTreeMap<Name, Definition>,
    /// Whether the ledger takes writes.
    pub openness: Openness,
}

impl Common {
    /// Lets the ledger know a job definition.
    pub fn define(&mut self, definition: Definition) -> Result<()> {
        self.check_name(&definition.name)?;
        self.add_name(&definition.name);
        self.definitions.insert(definition.name.clone(), definition);
        Ok(())
    }

    /// Every definition's name that was used.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.values()
    }

    /// The definitions that were registered.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.values()
    }

    /// Takes note of a name that is used.
    pub fn add_name(&mut self, name: &Name) {
        self.names.insert(name.as_str().to_ascii_lowercase(), name.clone());
    }

    fn check_name(&self, name: &Name) -> Result<()> {
        match self.names.get(&name.as_str().to_ascii_lowercase()) {
            Some(existing) if existing != name => {
                Err(Error::CaseDiffers { what: "name", given: name.to_string(), existing: existing.to_string() })
            }
            _ => Ok(()),
        }
    }
}

impl Book {
    /// An empty book of `namespace`.
    pub fn new(namespace: Namespace) -> Self {
        let queue = Queue { namespace, settings: QueueSettings::default(), paused: false };
        Self::open(Contents::new(queue), Common::default())
    }

    /// The book of what was kept.
    pub fn open(contents: Contents, common: Common) -> Self {
        let ids = contents.jobs.values().map(|job| (job.identity.id.clone(), job.row)).collect();
        let lane_numbers = contents.lanes.values().map(|lane| (lane.name.clone(), lane.number)).collect();
        Self { contents, common, ids, lane_numbers, is_changed: false, is_woken: false, beside: Beside::default() }
    }

    /// What is to be kept.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The same, and the end of the book.
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// Whether anything was changed since it was opened.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Hands in what is kept of workers and minutes, to be looked at or removed. Minutes are added without.
    pub fn lend_vitals(&mut self, vitals: Vitals) {
        self.beside = Beside { vitals, is_all: true, is_changed: false };
    }

    /// What is to be kept of workers and minutes, if they have changed; `false` says that it is only what comes to the kept
    /// minutes.
    pub fn changed_vitals(&mut self) -> Option<(Vitals, bool)> {
        let Beside { vitals, is_all, is_changed } = std::mem::take(&mut self.beside);
        is_changed.then_some((vitals, is_all))
    }

    /// Sets what the queue says about its jobs.
    pub fn set_settings(&mut self, settings: QueueSettings) {
        self.changed().queue.settings = settings;
    }

    /// What it has in common with the other books of its ledger.
    pub fn common(&self) -> &Common {
        &self.common
    }

    /// Whether a claim may find something that it did not find before the book was opened.
    pub fn is_woken(&self) -> bool {
        self.is_woken
    }

    /// The same, to be swapped or changed.
    pub fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    /// The job with this id.
    pub fn job(&self, id: &JobId) -> Option<&Job> {
        self.ids.get(id).and_then(|row| self.contents.jobs.get(row))
    }

    /// The record of the job in `row`, oldest first.
    pub fn history(&self, row: u64) -> impl Iterator<Item = &Entry> {
        self.contents.history.iter().filter(move |entry| entry.row == Some(row))
    }

    /// The contents, to be changed.
    fn changed(&mut self) -> &mut Contents {
        self.is_changed = true;
        &mut self.contents
    }

    fn changed_of_vitals(&mut self) -> &mut Vitals {
        self.beside.is_changed = true;
        &mut self.beside.vitals
    }

    fn at(&self, row: u64) -> Result<&Job> {
        self.contents.jobs.get(&row).ok_or_else(|| missing(row))
    }

    fn at_mut(&mut self, row: u64) -> Result<&mut Job> {
        self.changed().jobs.get_mut(&row).ok_or_else(|| missing(row))
    }

    /// Live jobs of the lane, by place.
    fn members(&self, number: LaneNumber) -> Vec<&Job> {
        let in_lane = |job: &&Job| job.standing.lane == Some(number);
        let mut members: Vec<&Job> = self.contents.jobs.values().filter(in_lane).collect();
        members.sort_by_key(|job| job.standing.place);
        members
    }

    fn live(&self) -> impl Iterator<Item = &Job> {
        self.contents.jobs.values().filter(|job| !job.standing.state.is_final())
    }
}

fn missing(row: u64) -> Error {
    Error::Unreadable { place: format!("row {row}"), why: "is not there".into() }
}

fn is_named(job: &Job, names: Option<&[Name]>) -> bool {
    names.is_none_or(|names| job.identity.name.as_ref().is_some_and(|name| names.contains(name)))
}

fn row_and_standing(job: &Job) -> (u64, Standing) {
    (job.row, job.standing.clone())
}

impl Rows for Book {
    fn queue(&self) -> &Queue {
        &self.contents.queue
    }

    fn set_queue_paused(&mut self, paused: bool) -> Result<()> {
        self.changed().queue.paused = paused;
        Ok(())
    }

    fn definition(&mut self, name: &Name) -> Result<Option<Definition>> {
        self.common.check_name(name)?;
        Ok(self.common.definitions.get(name).cloned())
    }

    fn next_number(&mut self) -> Result<u64> {
        let next = self.common.last_number.checked_add(1);
        self.common.last_number = next.ok_or_else(|| Error::Unreadable {
            place: "the last number".into(),
            why: "is the highest that there is".into(),
        })?;
        Ok(self.common.last_number)
    }

    fn insert(&mut self, job: Job) -> Result<()> {
        if let Some(name) = &job.identity.name {
            self.common.add_name(name);
        }
        self.ids.insert(job.identity.id.clone(), job.row);
        self.changed().jobs.insert(job.row, job);
        Ok(())
    }

    fn find(&mut self, id: &JobId) -> Result<Option<(u64, Standing)>> {
        Ok(self.job(id).map(row_and_standing))
    }

    fn identity(&mut self, row: u64) -> Result<Identity> {
        Ok(self.at(row)?.identity.clone())
    }

    fn standing(&mut self, row: u64) -> Result<Standing> {
        Ok(self.at(row)?.standing.clone())
    }

    fn detail(&mut self, row: u64) -> Result<Detail> {
        Ok(self.at(row)?.detail.clone())
    }

    fn save(&mut self, row: u64, standing: &Standing) -> Result<()> {
        self.at_mut(row)?.standing = standing.clone();
        Ok(())
    }

    fn save_detail(&mut self, row: u64, detail: &Detail) -> Result<()> {
        self.at_mut(row)?.detail = detail.clone();
        Ok(())
    }

    fn delete(&mut self, row: u64) -> Result<()> {
        if let Some(job) = self.changed().jobs.remove(&row) {
            self.ids.remove(&job.identity.id);
        }
        self.contents.history.retain(|entry| entry.row != Some(row));
        self.contents.foreign.of_jobs.remove(&row);
        self.forget(row)
    }

    fn wake(&mut self) {
        self.is_woken = true;
    }

    fn count(&mut self, _from: Option<Tally>, _to: Option<Tally>) {}

    fn tallies(&mut self) -> Result<Tallies> {
        let mut tallies = Tallies::new();
        for job in self.contents.jobs.values() {
            *tallies.entry(job.standing.tally()).or_default() += 1;
        }
        Ok(tallies)
    }

    fn flow(&mut self, minute: Timestamp, flow: Flow) {
        *self.changed_of_vitals().minutes.entry(minute).or_default() += flow;
    }

    fn minutes(&mut self, from: Timestamp) -> Result<Vec<Minute>> {
        Ok(self.beside.vitals.minutes.range(from..).map(|(&at, &flow)| Minute { at, flow }).collect())
    }

    fn remove_minutes(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        let old: Vec<Timestamp> = self.beside.vitals.minutes.range(..before).map(|(at, _)| *at).take(limit).collect();
        for minute in old {
            self.changed_of_vitals().minutes.remove(&minute);
        }
        Ok(())
    }

    fn worker(&mut self, id: &Label) -> Result<Option<Registered>> {
        Ok(self.beside.vitals.workers.get(id).cloned())
    }

    fn workers(&mut self, limit: usize) -> Result<Vec<Registered>> {
        let mut workers: Vec<Registered> = self.beside.vitals.workers.values().cloned().collect();
        workers.sort_by_key(|worker| std::cmp::Reverse(worker.seen_at));
        workers.truncate(limit);
        Ok(workers)
    }

    fn save_worker(&mut self, worker: &Registered) -> Result<()> {
        self.changed_of_vitals().workers.insert(worker.card.id.clone(), worker.clone());
        Ok(())
    }

    fn remove_worker(&mut self, id: &Label) -> Result<()> {
        if self.beside.vitals.workers.contains_key(id) {
            self.changed_of_vitals().workers.remove(id);
        }
        Ok(())
    }

    fn remove_workers(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        let is_old = |worker: &&Registered| worker.seen_at < before;
        let old: Vec<Label> = self
            .beside
            .vitals
            .workers
            .values()
            .filter(is_old)
            .map(|worker| worker.card.id.clone())
            .take(limit)
            .collect();
        for id in old {
            self.changed_of_vitals().workers.remove(&id);
        }
        Ok(())
    }

    fn due(&mut self, now: Timestamp, lapses: bool, limit: usize) -> Result<Vec<(u64, Standing)>> {
        let is_due = |job: &&Job| {
            let standing = &job.standing;
            let is_open = !standing.state.is_held() || standing.cancel_requested || (lapses && !standing.lane_paused);
            is_open && standing.due_at().is_some_and(|at| at <= now)
        };
        let mut due: Vec<&Job> = self.live().filter(is_due).collect();
        due.sort_by_key(|job| (job.standing.due_at(), job.standing.place));
        Ok(due.into_iter().take(limit).map(row_and_standing).collect())
    }

    fn candidates(
        &mut self,
        now: Timestamp,
        names: Option<&[Name]>,
        limit: usize,
    ) -> Result<Vec<(u64, Standing, Identity)>> {
        let is_one = |job: &&Job| job.standing.is_candidate() && !job.standing.is_expired(now);
        let mut candidates: Vec<&Job> = self.live().filter(is_one).filter(|job| is_named(job, names)).collect();
        candidates.sort_by_key(|job| (std::cmp::Reverse(job.standing.priority), job.standing.place));
        let whole = |job: &Job| (job.row, job.standing.clone(), job.identity.clone());
        Ok(candidates.into_iter().take(limit).map(whole).collect())
    }

    fn any_head_named(&mut self, names: &[Name]) -> Result<bool> {
        Ok(self.live().any(|job| job.standing.state.is_head() && is_named(job, Some(names))))
    }

    fn first_lapse(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        let counts = |standing: &Standing| {
            standing.state.is_held() && (standing.cancel_requested || !(standing.paused || standing.lane_paused))
        };
        let held = self.live().filter(|job| counts(&job.standing) && is_named(job, names));
        Ok(held.filter_map(|job| job.standing.lease_expires_at).min())
    }

    fn first_due(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        let deferred = self.live().filter(|job| {
            matches!(job.standing.state, State::Scheduled | State::Waiting)
                && !job.standing.is_aside()
                && is_named(job, names)
        });
        Ok(deferred.filter_map(|job| job.standing.moves_at()).min())
    }

    fn heads(&mut self, limit: usize) -> Result<Vec<(u64, Standing)>> {
        let mut heads: Vec<&Job> = self.live().filter(|job| job.standing.state.is_head()).collect();
        heads.sort_by_key(|job| job.standing.place);
        Ok(heads.into_iter().take(limit).map(row_and_standing).collect())
    }

    fn prunable(&mut self, now: Timestamp, limit: usize) -> Result<Vec<(u64, Standing)>> {
        let is_over = |job: &&Job| job.standing.prune_at.is_some_and(|at| at <= now);
        let mut over: Vec<&Job> = self.contents.jobs.values().filter(is_over).collect();
        over.sort_by_key(|job| (job.standing.prune_at, job.row));
        Ok(over.into_iter().take(limit).map(row_and_standing).collect())
    }

    fn last_hold(&mut self, lane: Option<&Label>) -> Result<Option<Entry>> {
        let is_it = |entry: &&Entry| entry.row.is_none() && entry.lane.as_ref() == lane;
        Ok(self.contents.history.iter().rev().find(is_it).cloned())
    }

    fn lanes(&mut self, after: Option<&Label>, limit: usize) -> Result<Vec<Lane>> {
        let is_behind = |(name, _): &(&Label, &LaneNumber)| after.is_none_or(|after| *name > after);
        let wanted = self.lane_numbers.iter().filter(is_behind);
        Ok(wanted.filter_map(|(_, number)| self.contents.lanes.get(number).cloned()).take(limit).collect())
    }

    fn lane(&mut self, name: &Label) -> Result<Option<Lane>> {
        Ok(self.lane_numbers.get(name).and_then(|number| self.contents.lanes.get(number)).cloned())
    }

    fn lane_numbered(&mut self, number: LaneNumber) -> Result<Lane> {
        self.contents.lanes.get(&number).cloned().ok_or_else(|| missing(number.0))
    }

    fn add_lane(&mut self, name: &Label) -> Result<Lane> {
        let last = self.contents.lanes.last_key_value().map_or(0, |(number, _)| number.0);
        let lane = Lane { number: LaneNumber(last + 1), name: name.clone(), live: 0, paused: false };
        self.lane_numbers.insert(name.clone(), lane.number);
        self.changed().lanes.insert(lane.number, lane.clone());
        Ok(lane)
    }

    fn save_lane(&mut self, lane: &Lane) -> Result<()> {
        self.changed().lanes.insert(lane.number, lane.clone());
        Ok(())
    }

    fn remove_lane(&mut self, number: LaneNumber) -> Result<()> {
        if let Some(lane) = self.changed().lanes.remove(&number) {
            self.lane_numbers.remove(&lane.name);
        }
        Ok(())
    }

    fn lane_head(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>> {
        let members = self.members(number);
        Ok(members.into_iter().find(|job| job.standing.state.is_head()).map(row_and_standing))
    }

    fn lane_next(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>> {
        let members = self.members(number);
        Ok(members.into_iter().find(|job| job.standing.state == State::Blocked).map(row_and_standing))
    }

    fn key(&mut self, key: &Label) -> Result<Option<KeyRecord>> {
        Ok(self.contents.keys.get(key).cloned())
    }

    fn save_key(&mut self, key: &Label, record: &KeyRecord) -> Result<()> {
        self.changed().keys.insert(key.clone(), record.clone());
        Ok(())
    }

    fn remove_key(&mut self, key: &Label) -> Result<()> {
        self.changed().keys.remove(key);
        Ok(())
    }

    fn remove_expired_keys(&mut self, now: Timestamp, limit: usize) -> Result<usize> {
        let expired = |record: &KeyRecord| record.expires_at.filter(|&at| at <= now);
        let over: BTreeSet<(Timestamp, Label)> =
            self.contents.keys.iter().filter_map(|(key, record)| Some((expired(record)?, key.clone()))).collect();
        let gone: Vec<_> = over.into_iter().take(limit).collect();
        for (_, key) in &gone {
            self.changed().keys.remove(key);
        }
        Ok(gone.len())
    }

    fn record(&mut self, entry: &Entry) -> Result<()> {
        self.changed().history.push(entry.clone());
        Ok(())
    }

    fn push_signal(&mut self, row: u64, name: &Name, payload: &Json) -> Result<()> {
        self.changed().signals.entry(row).or_default().push_back((name.clone(), payload.clone()));
        Ok(())
    }

    fn pop_signal(&mut self, row: u64, name: &Name) -> Result<Option<Json>> {
        let oldest = |kept: &VecDeque<(Name, Json)>| kept.iter().position(|(kept, _)| kept == name);
        let Some(index) = self.contents.signals.get(&row).and_then(oldest) else { return Ok(None) };
        let kept = self.changed().signals.entry(row).or_default();
        Ok(kept.remove(index).map(|(_, payload)| payload))
    }

    fn steps(&mut self, row: u64) -> Result<Vec<(String, Json)>> {
        Ok(self.contents.steps.get(&row).cloned().unwrap_or_default())
    }

    fn save_step(&mut self, row: u64, name: &str, value: &Json) -> Result<()> {
        self.changed().steps.entry(row).or_default().push((name.to_owned(), value.clone()));
        Ok(())
    }

    fn forget(&mut self, row: u64) -> Result<()> {
        self.changed().signals.remove(&row);
        self.contents.steps.remove(&row);
        Ok(())
    }
}
