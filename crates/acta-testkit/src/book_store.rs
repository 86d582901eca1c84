//! The books of a ledger behind the store's trait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use acta_core::book::Common;
use acta_core::explain::Explanation;
use acta_core::history::Entry;
use acta_core::rows::{Lane, Queue, Tallies};
use acta_core::store::{
    Beat, Claim, ClaimAnswer, Define, Enqueue, Enqueued, Found, Heartbeats, Hold, JobFilter, Operated, Operation, Page,
    Report, SettleAnswer, Wave,
};
use acta_core::{Book, Clock, Error, JobId, Json, Label, Namespace, Random, Result, Rows, Rules, Store};
use async_trait::async_trait;

/// A ledger in memory, kept by [`Book`] alone.
#[derive(Debug)]
pub struct BookStore {
    clock: Arc<dyn Clock>,
    shelf: Mutex<Shelf>,
}

struct Shelf {
    books: BTreeMap<Namespace, Book>,
    common: Common,
    random: Box<dyn Random>,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").field("books", &self.books).finish_non_exhaustive()
    }
}

impl BookStore {
    /// An empty ledger.
    pub fn new(clock: Arc<dyn Clock>, random: Box<dyn Random>) -> Self {
        let shelf = Shelf { books: BTreeMap::new(), common: Common::default(), random };
        Self { clock, shelf: Mutex::new(shelf) }
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Shelf) -> Result<T>) -> Result<T> {
        use_it(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a verb on a book that must be there; a refused verb leaves it as it was.
    fn on<T>(&self, namespace: &Namespace, verb: impl FnOnce(&mut Rules<'_, Book>) -> Result<T>) -> Result<T> {
        self.with(|shelf| shelf.run(namespace, self.clock.now(), verb))
    }
}

impl Shelf {
    fn book(&self, namespace: &Namespace) -> Result<Option<&Book>> {
        let same = |other: &&Namespace| other.to_string().eq_ignore_ascii_case(&namespace.to_string());
        match self.books.keys().find(same) {
            Some(existing) if existing != namespace => {
                Err(Error::CaseDiffers { what: "queue", given: namespace.to_string(), existing: existing.to_string() })
            }
            _ => Ok(self.books.get(namespace)),
        }
    }

    fn ensure(&mut self, namespace: &Namespace) -> Result<()> {
        if self.book(namespace)?.is_none() {
            self.books.insert(namespace.clone(), Book::new(namespace.clone()));
        }
        Ok(())
    }

    fn run<T>(
        &mut self,
        namespace: &Namespace,
        now: acta_core::Timestamp,
        verb: impl FnOnce(&mut Rules<'_, Book>) -> Result<T>,
    ) -> Result<T> {
        let book = self.book(namespace)?.ok_or_else(|| Error::not_found("queue", &namespace.to_string()))?;
        let mut changed = book.clone();
        *changed.common_mut() = self.common.clone();
        let answer = verb(&mut Rules::new(&mut changed, now, self.random.as_mut()))?;
        self.common = changed.common_mut().clone();
        self.books.insert(namespace.clone(), changed);
        Ok(answer)
    }

    fn locate(&self, id: &JobId) -> Result<Namespace> {
        let home = self.books.iter().find(|(_, book)| book.job(id).is_some());
        home.map(|(namespace, _)| namespace.clone()).ok_or_else(|| Error::not_found("job", id.as_str()))
    }
}

#[async_trait]
impl Store for BookStore {
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>> {
        self.with(|shelf| {
            let was_there = shelf.book(&enqueue.namespace)?.is_some();
            shelf.ensure(&enqueue.namespace)?;
            let answer = shelf.run(&enqueue.namespace, self.clock.now(), |rules| rules.enqueue(&enqueue.jobs));
            if answer.is_err() && !was_there {
                shelf.books.remove(&enqueue.namespace);
            }
            answer
        })
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer> {
        match self.on(&claim.namespace, |rules| rules.claim(&claim)) {
            Err(Error::NotFound { what: "queue", .. }) => Ok(ClaimAnswer::no_such_queue(&claim)),
            answer => answer,
        }
    }

    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>> {
        self.on(&wave.namespace, |rules| rules.settle(&wave.settlements))
    }

    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        if wave.namespace != claim.namespace {
            let why = "is not the namespace of the claim";
            return Err(Error::invalid("namespace", &wave.namespace.to_string(), why));
        }
        match self.on(&wave.namespace, |rules| rules.exchange(&wave.settlements, &claim)) {
            Err(Error::NotFound { what: "queue", .. }) => {
                Ok((wave.no_such_queue(), ClaimAnswer::no_such_queue(&claim)))
            }
            answer => answer,
        }
    }

    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        self.on(&beats.namespace, |rules| rules.heartbeat(&beats))
    }

    async fn report(&self, report: Report) -> Result<()> {
        self.on(&report.namespace, |rules| rules.report(&report))
    }

    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        self.on(&operation.namespace, |rules| rules.operate(&operation))
    }

    async fn hold(&self, hold: Hold) -> Result<()> {
        self.on(&hold.namespace, |rules| rules.hold(&hold))
    }

    async fn recover(&self, namespace: Namespace) -> Result<usize> {
        self.on(&namespace, |rules| Ok(rules.recover()?.len()))
    }

    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)> {
        self.on(&namespace, |rules| rules.prune(limit))
    }

    async fn define(&self, define: Define) -> Result<()> {
        define.check()?;
        self.with(|shelf| match define {
            Define::Job(definition) => shelf.common.define(definition),
            Define::Queue(namespace, settings) => {
                shelf.ensure(&namespace)?;
                if let Some(book) = shelf.books.get_mut(&namespace) {
                    book.set_settings(settings);
                }
                Ok(())
            }
        })
    }

    async fn job(&self, id: JobId) -> Result<Found> {
        let namespace = self.with(|shelf| shelf.locate(&id))?;
        let job = self.on(&namespace, |rules| rules.job(&id))?;
        Ok(Found { namespace, job })
    }

    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>> {
        match self.on(&namespace, |rules| rules.key_holder(&key)) {
            Err(Error::NotFound { what: "queue", .. }) => Ok(None),
            answer => answer,
        }
    }

    async fn jobs(&self, filter: JobFilter) -> Result<Page> {
        filter.check()?;
        self.with(|shelf| {
            if let Some(namespace) = &filter.namespace
                && shelf.book(namespace)?.is_none()
            {
                return Err(Error::not_found("queue", &namespace.to_string()));
            }
            let mut found: Vec<Found> = Vec::new();
            for (namespace, book) in &shelf.books {
                let takes = |job: &&acta_core::Job| {
                    filter.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
                        && filter.takes_status(namespace, job.standing.state, job.standing.business)
                        && filter.lane.as_ref().is_none_or(|lane| job.identity.lane.as_ref() == Some(lane))
                        && filter.key.as_ref().is_none_or(|key| job.identity.key.as_ref() == Some(key))
                        && filter.since.is_none_or(|since| job.identity.created_at >= since)
                        && filter.after_row.is_none_or(|after| job.row < after)
                };
                let jobs = book.jobs().filter(takes);
                found.extend(jobs.map(|job| Found { namespace: namespace.clone(), job: job.clone() }));
            }
            found.sort_by_key(|found| std::cmp::Reverse(found.job.row));
            let limit = filter.limit.clamp(1, 1_000);
            found.truncate(limit);
            let next = found.last().filter(|_| found.len() == limit).map(|last| last.job.row);
            Ok(Page { jobs: found, next })
        })
    }

    async fn history(&self, id: JobId) -> Result<Vec<Entry>> {
        self.with(|shelf| {
            let namespace = shelf.locate(&id)?;
            let book = shelf.books.get(&namespace);
            let of = |book: &Book| {
                let row = book.job(&id).map_or(0, |job| job.row);
                book.history(row).cloned().collect()
            };
            Ok(book.map(of).unwrap_or_default())
        })
    }

    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>> {
        let namespace = self.with(|shelf| shelf.locate(&id))?;
        self.on(&namespace, |rules| rules.steps(&id))
    }

    async fn explain(&self, id: JobId) -> Result<Explanation> {
        let namespace = self.with(|shelf| shelf.locate(&id))?;
        self.on(&namespace, |rules| rules.explain(&id))
    }

    async fn lanes(&self, namespace: Namespace, after: Option<Label>, limit: usize) -> Result<Vec<Lane>> {
        self.with(|shelf| {
            let book = shelf.book(&namespace)?;
            let book = book.ok_or_else(|| Error::not_found("queue", &namespace.to_string()))?;
            let lanes = book.lanes();
            let wanted = lanes.into_iter().filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
            Ok(wanted.take(limit).map(|(_, lane)| lane.clone()).collect())
        })
    }

    async fn queues(&self) -> Result<Vec<(Queue, Tallies)>> {
        self.with(|shelf| {
            let mut queues = Vec::new();
            for book in shelf.books.values_mut() {
                let tallies = book.tallies()?;
                queues.push((book.queue().clone(), tallies));
            }
            // By path, as a database would sort it, upper and lower case alike.
            queues.sort_by_key(|(queue, _)| queue.namespace.to_string().to_ascii_lowercase());
            Ok(queues)
        })
    }
}
