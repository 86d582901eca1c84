//! What must be true of a namespace at any time, and what an operator should know of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::book::Contents;
use crate::clock::Timestamp;
use crate::id::JobId;
use crate::job::{Job, Tally};
use crate::name::{Namespace, shell_word};
use crate::rows::Tallies;
use crate::state::State;
use crate::store::Finding;

/// Clocks of one machine that are set now and then differ by no more than this.
const MOST_AHEAD_MS: i64 = 60_000;
/// How many findings of one kind are told apart.
const MOST_TOLD: usize = 20;

/// What contradicts itself; `counted` is what the ledger says to have.
pub fn contradictions(contents: &Contents, counted: &Tallies) -> Vec<Finding> {
    let namespace = &contents.queue.namespace;
    let mut found = Vec::new();
    let mut add = |place: &dyn std::fmt::Display, what: String| {
        let fix =
            "this is a fault of the program or of a change by hand: keep a backup, and mend or restore the ledger";
        found.push(Finding::new(place, what, fix));
    };
    let (mut ids, mut places, mut tallies) = (BTreeSet::new(), BTreeSet::new(), Tallies::new());
    let mut lanes: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for job in contents.jobs.values() {
        let Job { identity, standing, .. } = job;
        if !ids.insert(&identity.id) {
            add(&identity.id, "is there twice".into());
        }
        if !places.insert(standing.place) {
            add(&identity.id, format!("has the place {} of another job", standing.place));
        }
        if standing.fence < u64::from(standing.attempts) {
            add(&identity.id, "has more attempts than claims".into());
        }
        *tallies.entry(standing.tally()).or_default() += 1;
        // One that arrived in somebody's transaction is no member of its lane before it has joined it.
        let is_arriving = standing.state == State::Blocked && standing.lane.is_none();
        if let (Some(lane), false) = (&identity.lane, standing.state.is_final() || is_arriving) {
            let entry = lanes.entry(lane.as_str()).or_default();
            entry.0 += usize::from(standing.state.is_head());
            entry.1 += 1;
        }
    }
    for (lane, (heads, live)) in &lanes {
        if *heads != 1 {
            add(namespace, format!("the lane {lane:?} has {heads} heads among {live} live members"));
        }
    }
    for lane in contents.lanes.values() {
        let live = lanes.get(lane.name.as_str()).map_or(0, |(_, live)| *live);
        if live != lane.live {
            let told = lane.live;
            add(namespace, format!("the lane {:?} has {live} live members, but counts {told}", lane.name.as_str()));
        }
    }
    if tallies != *counted {
        let told = |tallies: &Tallies| -> Vec<String> {
            tallies.iter().map(|(Tally(state, _), count)| format!("{count} {state}")).collect()
        };
        add(namespace, format!("it has {}, but counts {}", told(&tallies).join(", "), told(counted).join(", ")));
    }
    found
}

/// What the namespaces of one ledger must not have in common.
#[derive(Debug, Default)]
pub struct Whole {
    ids: BTreeMap<JobId, Namespace>,
    rows: BTreeMap<u64, Namespace>,
    paths: BTreeMap<String, Namespace>,
}

impl Whole {
    /// Takes one more namespace in; what contradicts those that were taken in before.
    pub fn add(&mut self, contents: &Contents) -> Vec<Finding> {
        let namespace = &contents.queue.namespace;
        let mut found = Vec::new();
        if let Some(other) = self.paths.insert(namespace.to_string().to_ascii_lowercase(), namespace.clone()) {
            let what = format!("differs from {other} only by case");
            found.push(Finding::new(namespace, what, "give one of them another name"));
        }
        for job in contents.jobs.values() {
            let id = &job.identity.id;
            if let Some(other) = self.ids.insert(id.clone(), namespace.clone()) {
                let what = format!("is in {other} and in {namespace}");
                found.push(Finding::new(id, what, "take one of them out, or give it another id"));
            } else if let Some(other) = self.rows.insert(job.row, namespace.clone()) {
                let what = format!("has the number {} of a job in {other}", job.row);
                let fix =
                    "it came from another ledger: give it an id of your own making, and it gets a number of its own";
                found.push(Finding::new(id, what, fix));
            }
        }
        found.truncate(MOST_TOLD);
        found
    }
}

/// What is no contradiction, but waits for somebody or something.
pub fn concerns(contents: &Contents, now: Timestamp) -> Vec<Finding> {
    let queue = &contents.queue;
    let mut found = Vec::new();
    let (mut lapsed, mut ahead) = (0, 0);
    for Job { identity, standing, .. } in contents.jobs.values() {
        let id = &identity.id;
        if standing.is_lapsed(now) {
            lapsed += 1;
            if lapsed <= MOST_TOLD {
                let holder = standing.claimed_by.as_ref().map_or("a robot", |robot| robot.as_str());
                let until = standing.lease_expires_at.map(|at| at.to_string()).unwrap_or_default();
                let fix = if queue.paused || standing.lane_paused {
                    "nothing is reclaimed while its queue or lane is paused: resume that"
                } else {
                    "the next claim in this queue takes it over; is a worker running?"
                };
                found.push(Finding::new(id, format!("its lease, of {holder:?}, lapsed at {until}"), fix));
            }
        }
        let instants = [Some(identity.created_at), standing.claimed_at, standing.finished_at];
        if instants.into_iter().flatten().any(|at| at.since_ms(now) > MOST_AHEAD_MS) {
            ahead += 1;
        }
    }
    if lapsed > MOST_TOLD {
        let what = format!("{} more leases have lapsed", lapsed - MOST_TOLD);
        found.push(Finding::new(&queue.namespace, what, "are workers running?"));
    }
    if ahead > 0 {
        let what = format!("{ahead} jobs have instants that are still to come: a clock was, or is, wrong");
        let fix = "compare this machine's clock with the right time; leases and delays count by it";
        found.push(Finding::new(&queue.namespace, what, fix));
    }
    for lane in contents.lanes.values().filter(|lane| lane.paused && lane.live > 0) {
        let what = format!("the lane {:?} is paused; live items: {}", lane.name.as_str(), lane.live);
        let (name, flag) = (shell_word(lane.name.as_str()), queue.namespace.flag());
        let fix = format!("`lanes resume {name} {flag}` lets it go on, if that is wanted");
        found.push(Finding::new(&queue.namespace, what, fix));
    }
    if queue.paused {
        let fix = format!("`queues resume {}` lets it go on, if that is wanted", queue.namespace.flag());
        found.push(Finding::new(&queue.namespace, "the queue is paused", fix));
    }
    found
}
