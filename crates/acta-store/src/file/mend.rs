//! What the items of a file are to each other: their order, their lanes, their keys, also after a change by hand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use acta_core::book::{Common, Contents};
use acta_core::job::{KeyHold, LaneNumber};
use acta_core::rows::{KeyRecord, Lane};
use acta_core::rules::digest;
use acta_core::{Job, JobId, Label, Namespace, State, Timestamp};

use super::aside::Aside;

/// Above this, a number in a foreign id is taken for chance.
const MOST_ROW: u64 = 1 << 48;

/// The row that an id speaks of, if this queue has made it.
pub(super) fn row_of(namespace: &Namespace, id: &JobId) -> Option<u64> {
    let is_own = id.as_str().strip_prefix(namespace.name().as_str()).is_some_and(|rest| rest.starts_with("-item-"));
    id.row().filter(|row| is_own && (1..MOST_ROW).contains(row))
}

/// Gives every item its row and its place: the one that it had, or a new one. The order of the items in the file is the
/// order of their places, whoever made it.
pub(super) fn number<'a>(
    namespace: &Namespace,
    common: &mut Common,
    items: impl Iterator<Item = (&'a mut Job, &'a Aside)>,
) -> Vec<String> {
    let mut mended = Vec::new();
    let mut taken = HashSet::new();
    let mut places = Vec::new();
    let mut jobs: Vec<&mut Job> = Vec::new();
    for (job, aside) in items {
        let had = aside.row.or_else(|| row_of(namespace, &job.identity.id)).filter(|row| !taken.contains(row));
        job.row = had.unwrap_or_default();
        taken.extend(had);
        job.standing.place = aside.place.or(had).unwrap_or_default();
        places.extend(Some(job.standing.place).filter(|&place| place > 0));
        jobs.push(job);
    }
    let last = taken.iter().chain(&places).max().copied().unwrap_or_default();
    common.last_number = common.last_number.max(last);
    let mut next = || {
        common.last_number += 1;
        common.last_number
    };
    for job in &mut jobs {
        if job.row == 0 {
            job.row = next();
            mended.push(format!("{}: it had no number", job.identity.id));
        }
        if job.standing.place == 0 {
            // A new item shares its number between row and place, as one that was enqueued does.
            places.push(job.row);
        }
    }
    places.sort_unstable();
    for index in 1..places.len() {
        if places[index] <= places[index - 1] {
            places[index] = places[index - 1] + 1;
        }
    }
    common.last_number = common.last_number.max(places.last().copied().unwrap_or_default());
    for (job, place) in jobs.into_iter().zip(places) {
        let had = std::mem::replace(&mut job.standing.place, place);
        if had != place && had > 0 {
            mended.push(format!("{}: it was moved in the order", job.identity.id));
        }
    }
    mended
}

/// Lets keys and items agree: no key of an item that is gone, none missing of one that is there.
pub(super) fn keys(contents: &mut Contents, rows: &HashMap<JobId, u64>) -> Vec<String> {
    let mut mended = Vec::new();
    let Contents { jobs, keys, .. } = contents;
    keys.retain(|key, record| {
        let holder = rows.get(&record.id).and_then(|row| jobs.get(row));
        let is_held = record.expires_at.is_some() || holder.is_some_and(holds);
        if !is_held {
            mended.push(format!("{}: it holds the key {:?} no more", record.id, key.as_str()));
        }
        is_held
    });
    for job in contents.jobs.values() {
        let Some(key) = &job.identity.dedup_key else { continue };
        if holds(job) && !contents.keys.contains_key(key) {
            mended.push(format!("{}: it holds the key {:?}", job.identity.id, key.as_str()));
            let record = KeyRecord {
                id: job.identity.id.clone(),
                state: job.standing.state,
                digest: digest(&job.identity.payload),
                expires_at: None,
            };
            contents.keys.insert(key.clone(), record);
        }
    }
    mended
}

/// Whether a job still holds its deduplication key.
fn holds(job: &Job) -> bool {
    match job.standing.key_hold {
        KeyHold::None => false,
        KeyHold::WhileLive => !job.standing.state.is_final(),
        KeyHold::Kept => true,
    }
}

/// Lays out the lanes: of the live members of each, one is the head, and the others wait behind it.
pub(super) fn lanes(contents: &mut Contents, paused: &BTreeSet<Label>, now: Timestamp) -> Vec<String> {
    let mut mended = Vec::new();
    let mut members: BTreeMap<Label, Vec<u64>> = paused.iter().map(|lane| (lane.clone(), Vec::new())).collect();
    for job in contents.jobs.values_mut().filter(|job| !job.standing.state.is_final()) {
        match &job.identity.lane {
            Some(lane) => members.entry(lane.clone()).or_default().push(job.row),
            None if job.standing.state == State::Blocked => {
                free(job, now);
                mended.push(format!("{}: nothing is before it any more", job.identity.id));
            }
            None => {}
        }
    }
    for (number, (name, mut rows)) in (1..).zip(members) {
        let number = LaneNumber(number);
        let is_paused = paused.contains(&name);
        rows.sort_by_key(|row| contents.jobs[row].standing.place);
        // Whoever is at it stays at it; else the first in the order is next.
        let is_at_it = |row: &&u64| {
            let state = contents.jobs[row].standing.state;
            state.is_held() || state == State::Waiting
        };
        let head = rows.iter().find(is_at_it).or(rows.first()).copied();
        for row in &rows {
            let Some(job) = contents.jobs.get_mut(row) else { continue };
            job.standing.lane = Some(number);
            job.standing.lane_paused = is_paused && head == Some(*row);
            let before = job.standing.state;
            match before {
                State::Blocked if head == Some(*row) => free(job, now),
                State::Ready | State::Scheduled if head != Some(*row) => job.standing.state = State::Blocked,
                _ => {}
            }
            if job.standing.state != before {
                mended.push(format!("{}: its lane goes on in another order", job.identity.id));
            }
        }
        let live = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        contents.lanes.insert(number, Lane { number, name, live, paused: is_paused });
    }
    mended
}

/// Nothing is before it any more.
fn free(job: &mut Job, now: Timestamp) {
    let later = job.standing.run_at.is_some_and(|at| at > now);
    job.standing.state = if later { State::Scheduled } else { State::Ready };
}
