//! What a ledger has acknowledged, a line each, and whether it keeps it.

use std::collections::{BTreeMap, BTreeSet};

use acta_core::store::Found;
use acta_core::{JobId, State};

/// What was acknowledged of one job.
#[derive(Debug, Default)]
struct Promise {
    key: String,
    /// Of the last claim.
    fence: u64,
    /// The final state that a settle or a cancel has led to.
    end: Option<State>,
    paused: bool,
}

/// What was acknowledged, by the job's id.
#[derive(Debug, Default)]
pub(super) struct Promises(BTreeMap<String, Promise>);

impl Promises {
    /// Reads lines as [`crate::child`] writes them.
    pub(super) fn read(lines: &str) -> Self {
        let mut promises = Self::default();
        lines.lines().for_each(|line| promises.note(line));
        promises
    }

    /// Takes one more line in.
    pub(super) fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [verb, id, what] = words[..] else { panic!("{line:?} is not three words") };
        // The line of a quick settle may come before that of the enqueue.
        let promise = self.0.entry(id.to_owned()).or_default();
        match verb {
            "enqueued" => what.clone_into(&mut promise.key),
            "claimed" => promise.fence = promise.fence.max(what.parse().expect("a fence")),
            "ended" => promise.end = State::ALL.into_iter().find(|state| state.word() == what),
            "paused" => promise.paused = true,
            _ => panic!("{line:?} says something unknown"),
        }
    }

    /// What was acknowledged and is not in the ledger.
    pub(super) fn lost(&self, jobs: &[Found]) -> Vec<String> {
        let jobs: BTreeMap<&str, &Found> = jobs.iter().map(|found| (found.job.identity.id.as_str(), found)).collect();
        let mut lost = Vec::new();
        for (id, promise) in &self.0 {
            let Some(Found { job, .. }) = jobs.get(id.as_str()) else {
                lost.push(format!("{id} is not there: {promise:?}"));
                continue;
            };
            let (key, standing) = (job.identity.dedup_key.as_ref(), &job.standing);
            let is_kept = (promise.key.is_empty() || key.is_some_and(|key| key.as_str() == promise.key))
                && standing.fence >= promise.fence
                && promise.end.is_none_or(|end| standing.state == end)
                && (standing.paused || !promise.paused);
            if !is_kept {
                lost.push(format!("{id} is {standing:?}, but acknowledged was {promise:?}"));
            }
        }
        lost
    }

    /// Jobs that are not there although a later one is: commits are lost from the end, if at all.
    pub(super) fn out_of_order(&self, jobs: &[Found]) -> Vec<String> {
        let there: BTreeSet<&str> = jobs.iter().map(|found| found.job.identity.id.as_str()).collect();
        let last = jobs.iter().map(|found| found.job.row).max().unwrap_or_default();
        let row = |id: &str| JobId::new(id).ok().and_then(|id| id.row()).unwrap_or_default();
        let missing = self.0.keys().filter(|id| !there.contains(id.as_str()) && row(id) < last);
        missing.map(|id| format!("{id} is not there, but a later job is")).collect()
    }

    /// What is in the ledger and was not acknowledged.
    pub(super) fn surplus(&self, jobs: &[Found]) -> Vec<String> {
        let mut surplus = Vec::new();
        for Found { job, .. } in jobs {
            let (id, standing) = (&job.identity.id, &job.standing);
            let Some(promise) = self.0.get(id.as_str()) else {
                surplus.push(format!("{id} is there, but its enqueue was refused: {:?}", job.identity.dedup_key));
                continue;
            };
            let is_more = standing.fence > promise.fence
                || (standing.state.is_final() && promise.end.is_none())
                || (standing.paused && !promise.paused);
            if is_more {
                surplus.push(format!("{id} is {standing:?}, but only {promise:?} was acknowledged"));
            }
        }
        surplus
    }
}
