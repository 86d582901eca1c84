//! Looking at jobs.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::explain::Pause;
use crate::job::Job;
use crate::name::{Family, Label, Namespace};
use crate::rows::{Queue, Tallies};
use crate::state::State;
use crate::vitals::Activity;

/// A job and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its namespace.
    pub namespace: Namespace,
    /// The job.
    pub job: Job,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// In this namespace.
    pub namespace: Option<Namespace>,
    /// With this status: a family's word or a state.
    pub status: Option<String>,
    /// In this lane.
    pub lane: Option<Label>,
    /// With this business key.
    pub key: Option<Label>,
    /// Enqueued at or after.
    pub since: Option<Timestamp>,
    /// From after this row on, as [`Page::next`] says.
    pub after_row: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

impl JobFilter {
    /// Whether a job of `namespace` has the wanted status.
    pub fn takes_status(&self, namespace: &Namespace, state: State, business: bool) -> bool {
        self.status
            .as_deref()
            .is_none_or(|word| word == state.word() || word == namespace.family().word(state, business))
    }

    /// All words that [`JobFilter::status`] may be.
    pub fn status_words() -> Vec<&'static str> {
        let mut words: Vec<&str> = Vec::new();
        for family in [Family::JobQueue, Family::TransactionQueue, Family::Plain] {
            for state in State::ALL {
                for business in [false, true] {
                    let word = family.word(state, business);
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
            }
        }
        words
    }

    /// The states that a word may stand for, in one family or another.
    pub fn states_of(word: &str) -> Vec<State> {
        let families = [Family::JobQueue, Family::TransactionQueue, Family::Plain];
        let means = |state: State| {
            let is_word_of =
                |family: &Family| [false, true].iter().any(|&business| family.word(state, business) == word);
            state.word() == word || families.iter().any(is_word_of)
        };
        State::ALL.into_iter().filter(|state| means(*state)).collect()
    }

    /// Refuses a word that no job can have.
    pub fn check(&self) -> Result<()> {
        match self.status.as_deref() {
            Some(word) if !Self::status_words().contains(&word) => {
                let why = format!("is none of {}", Self::status_words().join(", "));
                Err(Error::invalid("status", word, why))
            }
            _ => Ok(()),
        }
    }
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The jobs, newest first.
    pub jobs: Vec<Found>,
    /// Where the next page begins, if there may be one.
    pub next: Option<u64>,
    /// Namespaces that can't be read, and why; the jobs of the others are here all the same.
    pub unreadable: Vec<Error>,
}

/// Which lanes of a namespace to list, by name.
#[derive(Clone, Debug)]
pub struct LaneFilter {
    /// Where.
    pub namespace: Namespace,
    /// This one only.
    pub name: Option<Label>,
    /// From after this name on.
    pub after: Option<Label>,
    /// At most so many.
    pub limit: usize,
}

impl LaneFilter {
    /// All lanes of a namespace.
    pub fn all(namespace: Namespace) -> Self {
        Self { namespace, name: None, after: None, limit: usize::MAX }
    }
}

/// What to tell of which namespaces.
#[derive(Clone, Debug, Default)]
pub struct QueueFilter {
    /// Of this one only.
    pub namespace: Option<Namespace>,
    /// What goes on there, too: the workers, and so many of the last minutes, at most those of a day.
    pub activity: Option<usize>,
}

impl QueueFilter {
    /// One namespace with its workers and the last hour.
    pub fn closely(namespace: Namespace) -> Self {
        Self { namespace: Some(namespace), activity: Some(60) }
    }

    /// Whether it is about this namespace.
    pub fn takes(&self, namespace: &Namespace) -> bool {
        self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
    }
}

/// The namespaces of a ledger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// Each with its counts, by path.
    pub queues: Vec<(Queue, Tallies)>,
    /// Who paused those that are paused.
    pub pauses: BTreeMap<Namespace, Pause>,
    /// What goes on in them, where that was asked for.
    pub activity: BTreeMap<Namespace, Activity>,
    /// Namespaces that can't be read, and why.
    pub unreadable: Vec<Error>,
}
