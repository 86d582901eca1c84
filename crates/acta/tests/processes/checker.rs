//! Whether a record, and what the ledger says in the end, can be true of a ledger that keeps its rules.

use std::collections::{BTreeMap, BTreeSet};

use super::record::Line;

/// What the ledger says of a job in the end.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) job: u32,
    pub(crate) succeeded: bool,
    pub(crate) attempts: u32,
    pub(crate) fence: u64,
    /// How many entries of its record say that a lease was lost, and how many say anything else.
    pub(crate) losses: u64,
    pub(crate) other_entries: u64,
}

/// Everything that is wrong; nothing, if all is well. `jobs` were enqueued, numbered from 0.
pub(crate) fn check(jobs: u32, lines: &[Line], said: &[Said]) -> Vec<String> {
    let mut wrong = overlaps_and_order(lines);
    let mut fences: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let mut ends: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Begun { job, fence, .. } => {
                if !fences.entry(*job).or_default().insert(*fence) {
                    wrong.push(format!("job {job} began twice under fence {fence}"));
                }
            }
            Line::Ended { job, fence, .. } => {
                ends.entry(*job).or_default().insert(*fence);
            }
            Line::Gone { .. } => {}
        }
    }
    let told: BTreeMap<u32, &Said> = said.iter().map(|said| (said.job, said)).collect();
    if told.len() != said.len() || told.len() != jobs as usize {
        wrong.push(format!("{jobs} jobs were enqueued, the ledger has {} of {} numbers", said.len(), told.len()));
    }
    for job in 0..jobs {
        let Some(said) = told.get(&job) else {
            wrong.push(format!("job {job} is lost"));
            continue;
        };
        if !said.succeeded {
            wrong.push(format!("job {job} did not succeed"));
        }
        if !ends.get(&job).is_some_and(|ends| ends.contains(&said.fence)) {
            wrong.push(format!("job {job} succeeded under fence {}, but no handler returned under it", said.fence));
        }
        let last = fences.get(&job).and_then(|fences| fences.last().copied()).unwrap_or(0);
        if last > said.fence {
            wrong.push(format!("job {job} was run under fence {last}, which the ledger never gave"));
        }
        // Every claim but the last ended by a lost lease, or was given back, which takes its attempt back.
        let given_back = said.fence - u64::from(said.attempts);
        if said.losses + given_back + 1 != said.fence || said.other_entries != given_back {
            wrong.push(format!(
                "job {job}: {} claims, {} attempts, {} losses, {} other entries",
                said.fence, said.attempts, said.losses, said.other_entries
            ));
        }
    }
    wrong
}

/// No two executions of a lane at one time; those that are the first of their job begin in the lane's order.
fn overlaps_and_order(lines: &[Line]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut running: BTreeMap<u32, (u32, u32, u64)> = BTreeMap::new();
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for line in lines {
        match *line {
            Line::Begun { pid, job, lane, nth, fence, .. } => {
                if let Some((other, before, _)) = running.insert(lane, (pid, job, fence)) {
                    wrong.push(format!("lane {lane}: job {job} began while {before} ran in process {other}"));
                }
                if seen.insert(job) {
                    let expected = next.entry(lane).or_default();
                    if nth != *expected {
                        wrong.push(format!("lane {lane}: number {nth} began, {expected} was next"));
                    }
                    *expected = nth + 1;
                }
            }
            Line::Ended { job, fence, .. } => running.retain(|_, (_, other, under)| (*other, *under) != (job, fence)),
            Line::Gone { pid } => running.retain(|_, (owner, _, _)| *owner != pid),
        }
    }
    wrong
}

fn begun(job: u32, lane: u32, nth: u32, fence: u64) -> Line {
    Line::Begun { pid: 7, job, lane, nth, attempt: 1, fence }
}

fn ended(job: u32, fence: u64) -> Line {
    Line::Ended { pid: 7, job, fence }
}

fn done(job: u32) -> Said {
    Said { job, succeeded: true, attempts: 1, fence: 1, losses: 0, other_entries: 0 }
}

#[test]
fn the_checker_finds_what_is_planted() {
    let good = [begun(0, 0, 0, 1), ended(0, 1), begun(1, 0, 1, 1), ended(1, 1)];
    let said = [done(0), done(1)];
    assert_eq!(check(2, &good, &said), Vec::<String>::new());
    let caught = |lines: &[Line], said: &[Said], what: &str| {
        let wrong = check(2, lines, said);
        assert!(wrong.iter().any(|wrong| wrong.contains(what)), "{what}: {wrong:?}");
    };
    let overlap = [begun(0, 0, 0, 1), begun(1, 0, 1, 1), ended(0, 1), ended(1, 1)];
    caught(&overlap, &said, "began while");
    let swapped = [begun(1, 0, 1, 1), ended(1, 1), begun(0, 0, 0, 1), ended(0, 1)];
    caught(&swapped, &said, "was next");
    caught(&good, &said[..1], "is lost");
    caught(&good, &[done(0), done(0)], "numbers");
    caught(&good[..3], &said, "no handler returned");
    let twice = [&good[..], &[begun(1, 0, 1, 1), ended(1, 1)]].concat();
    caught(&twice, &said, "began twice");
    let again = [&good[..], &[begun(1, 0, 1, 2), ended(1, 2)]].concat();
    caught(&again, &said, "never gave");
    caught(&good, &[done(0), Said { fence: 2, ..done(1) }], "claims");
    caught(&good, &[done(0), Said { losses: 1, ..done(1) }], "claims");
    caught(&good, &[done(0), Said { succeeded: false, ..done(1) }], "did not succeed");
    let killed =
        [begun(0, 0, 0, 1), Line::Gone { pid: 7 }, begun(0, 0, 0, 2), ended(0, 2), begun(1, 0, 1, 1), ended(1, 1)];
    let lost = Said { fence: 2, attempts: 2, losses: 1, ..done(0) };
    assert_eq!(check(2, &killed, &[lost, done(1)]), Vec::<String>::new());
}
