//! A ledger of whole books: every verb of [`crate::Store`], over something that keeps books.

mod memory;
mod port;
mod shared;

use std::path::Path;
use std::sync::Arc;

use crate::book::{Book, Common, Contents};
use crate::changes::Changes;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::explain::{Explanation, LaneView};
use crate::history::Entry;
use crate::id::JobId;
use crate::job::Job;
use crate::json::Json;
use crate::name::{Label, Namespace};
use crate::policy::QueueSettings;
use crate::random::Random;
use crate::rows::{Queue, Rows};
use crate::rules::Rules;
use crate::store::{
    Beat, Claim, ClaimAnswer, Define, Deliver, Delivered, Enqueue, Enqueued, Finding, Found, Heartbeats, Hold,
    JobFilter, LaneFilter, Operated, Operation, Overview, Page, QueueFilter, Report, SettleAnswer, Wave,
};
use crate::vitals::Vitals;

pub use memory::{Memory, MemoryStore};
pub use shared::{Access, Shared};

/// Keeps the books of one ledger, each as a whole.
pub trait Keeper {
    /// The namespaces that there are.
    fn namespaces(&mut self) -> Result<Vec<Namespace>>;
    /// What a namespace holds; `None` if there is none of exactly this name.
    fn load(&mut self, namespace: &Namespace) -> Result<Option<Contents>>;
    /// Keeps a namespace; durable when it returns.
    fn save(&mut self, contents: Contents) -> Result<()>;
    /// Whether what was loaded last is to be kept even if no verb changes it: it was completed while it was read.
    fn wants_saving(&self, _namespace: &Namespace) -> bool {
        false
    }
    /// Takes back what it has loaded and nobody has changed.
    fn put_back(&mut self, contents: Contents);
    /// What is kept of a namespace's workers and minutes.
    fn vitals(&mut self, namespace: &Namespace) -> Result<Vitals>;
    /// Keeps it. It may be lost where the machine fails; nothing else may be with it.
    fn save_vitals(&mut self, namespace: &Namespace, vitals: Vitals) -> Result<()>;
    /// What all books have in common.
    fn common(&mut self) -> Result<Common>;
    /// The ledger's name, for errors.
    fn place(&self) -> String;
    /// Writes all that is kept to `path`, where nothing may be yet.
    fn backup(&mut self, path: &Path) -> Result<()>;
    /// What is wrong with what keeps the books.
    fn examine(&mut self) -> Result<Vec<Finding>>;
    /// Keeps it; durable when it returns.
    fn save_common(&mut self, common: &Common) -> Result<()>;
}

/// The verbs of a ledger over a [`Keeper`].
///
/// Whoever calls them sees to it that nobody else uses the same books meanwhile, if only one that writes.
pub struct Shelf<K> {
    /// What keeps the books.
    pub keeper: K,
    clock: Arc<dyn Clock>,
    random: Box<dyn Random>,
    changes: Arc<Changes>,
}

impl<K: std::fmt::Debug> std::fmt::Debug for Shelf<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").field("keeper", &self.keeper).finish_non_exhaustive()
    }
}

impl<K: Keeper> Shelf<K> {
    /// The ledger of a keeper.
    pub fn new(keeper: K, clock: Arc<dyn Clock>, random: Box<dyn Random>) -> Self {
        Self { keeper, clock, random, changes: Arc::default() }
    }

    /// Who waits for changes of these books.
    pub fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// The book of a namespace, if there is one. A name that differs from another only by case is refused.
    fn find(&mut self, namespace: &Namespace) -> Result<Option<Book>> {
        if let Some(contents) = self.keeper.load(namespace)? {
            return Ok(Some(Book::open(contents, self.keeper.common()?)));
        }
        let path = namespace.to_string();
        for other in self.keeper.namespaces()? {
            let existing = other.to_string();
            if existing != path && existing.eq_ignore_ascii_case(&path) {
                return Err(Error::CaseDiffers { what: "queue", given: path, existing });
            }
        }
        Ok(None)
    }

    fn book(&mut self, namespace: &Namespace) -> Result<Book> {
        self.find(namespace)?.ok_or_else(|| Error::not_found("queue", &namespace.to_string()))
    }

    fn find_or_new(&mut self, namespace: &Namespace) -> Result<(Book, bool)> {
        if let Some(book) = self.find(namespace)? {
            return Ok((book, false));
        }
        let queue = Queue { namespace: namespace.clone(), settings: QueueSettings::default(), paused: false };
        Ok((Book::open(Contents::new(queue), self.keeper.common()?), true))
    }

    /// The book that the job is in.
    fn locate(&mut self, id: &JobId) -> Result<Book> {
        let mut namespaces = self.keeper.namespaces()?;
        // An id begins with the name of the queue that it was made for.
        let may_be_its = |namespace: &Namespace| {
            id.as_str().strip_prefix(namespace.name().as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        namespaces.sort_by_key(|namespace| !may_be_its(namespace));
        let mut unreadable = None;
        for namespace in namespaces {
            match self.find(&namespace) {
                Ok(Some(book)) if book.job(id).is_some() => return Ok(book),
                Ok(book) => book.into_iter().for_each(|book| self.keeper.put_back(book.into_contents())),
                // It may be in there; or in another one, which goes on.
                Err(fault) => unreadable = unreadable.or(Some(fault)),
            }
        }
        Err(unreadable.unwrap_or_else(|| Error::not_found("job", id.as_str())))
    }

    /// Runs a verb; what it did to a book is kept if it succeeds, and only then.
    fn run<T>(
        &mut self,
        mut book: Book,
        is_new: bool,
        verb: impl FnOnce(&mut Rules<'_, Book>) -> Result<T>,
    ) -> Result<T> {
        let before = book.common().clone();
        before.openness.check(self.keeper.place())?;
        let answer = verb(&mut Rules::new(&mut book, self.clock.now(), self.random.as_mut()))?;
        if *book.common() != before {
            // First: a number that was given and not used is no harm, one that is given twice is.
            self.keeper.save_common(book.common())?;
        }
        let namespace = book.contents().queue.namespace.clone();
        let vitals = book.changed_vitals();
        if book.is_changed() || is_new || self.keeper.wants_saving(&namespace) {
            let is_woken = book.is_woken();
            self.keeper.save(book.into_contents())?;
            if is_woken {
                self.changes.note(&namespace);
            }
            // What was done to the jobs is done, whether it could be counted or not.
            let _ = self.keep_vitals(&namespace, vitals);
        } else {
            self.keeper.put_back(book.into_contents());
            self.keep_vitals(&namespace, vitals)?;
        }
        Ok(answer)
    }

    fn keep_vitals(&mut self, namespace: &Namespace, changed: Option<(Vitals, bool)>) -> Result<()> {
        match changed {
            None => Ok(()),
            Some((all, true)) => self.keeper.save_vitals(namespace, all),
            Some((more, false)) => {
                let mut kept = self.keeper.vitals(namespace)?;
                kept.add(&more.minutes);
                self.keeper.save_vitals(namespace, kept)
            }
        }
    }

    /// The book of a namespace with what is kept of its workers and minutes.
    fn vital_book(&mut self, namespace: &Namespace) -> Result<Book> {
        let mut book = self.book(namespace)?;
        book.lend_vitals(self.keeper.vitals(namespace)?);
        Ok(book)
    }

    fn on<T>(&mut self, namespace: &Namespace, verb: impl FnOnce(&mut Rules<'_, Book>) -> Result<T>) -> Result<T> {
        let book = self.book(namespace)?;
        self.run(book, false, verb)
    }

    /// [`crate::Store::enqueue`].
    pub fn enqueue(&mut self, enqueue: &Enqueue) -> Result<Vec<Enqueued>> {
        let (book, is_new) = self.find_or_new(&enqueue.namespace)?;
        self.run(book, is_new, |rules| rules.enqueue(&enqueue.jobs))
    }

    /// [`crate::Store::deliver`].
    pub fn deliver(&mut self, deliver: &Deliver) -> Result<Vec<Delivered>> {
        let (book, is_new) = self.find_or_new(&deliver.namespace)?;
        self.run(book, is_new, |rules| rules.deliver(&deliver.deliveries))
    }

    /// [`crate::Store::claim`].
    pub fn claim(&mut self, claim: &Claim) -> Result<ClaimAnswer> {
        match self.find(&claim.namespace)? {
            None => Ok(ClaimAnswer::no_such_queue(claim)),
            Some(book) => self.run(book, false, |rules| rules.claim(claim)),
        }
    }

    /// [`crate::Store::settle`].
    pub fn settle(&mut self, wave: &Wave) -> Result<Vec<Result<SettleAnswer>>> {
        self.on(&wave.namespace, |rules| rules.settle(&wave.settlements))
    }

    /// [`crate::Store::exchange`].
    pub fn exchange(&mut self, wave: &Wave, claim: &Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        if wave.namespace != claim.namespace {
            let why = "is not the namespace of the claim";
            return Err(Error::invalid("namespace", &wave.namespace.to_string(), why));
        }
        match self.find(&wave.namespace)? {
            None => Ok((wave.no_such_queue(), ClaimAnswer::no_such_queue(claim))),
            Some(book) => self.run(book, false, |rules| rules.exchange(&wave.settlements, claim)),
        }
    }

    /// [`crate::Store::heartbeat`].
    pub fn heartbeat(&mut self, beats: &Heartbeats) -> Result<Vec<Result<Beat>>> {
        if beats.worker.is_none() {
            return self.on(&beats.namespace, |rules| rules.heartbeat(beats));
        }
        let book = self.vital_book(&beats.namespace)?;
        self.run(book, false, |rules| rules.heartbeat(beats))
    }

    /// [`crate::Store::report`].
    pub fn report(&mut self, report: &Report) -> Result<()> {
        self.on(&report.namespace, |rules| rules.report(report))
    }

    /// [`crate::Store::operate`].
    pub fn operate(&mut self, operation: &Operation) -> Result<Vec<Result<Operated>>> {
        self.on(&operation.namespace, |rules| rules.operate(operation))
    }

    /// [`crate::Store::hold`].
    pub fn hold(&mut self, hold: &Hold) -> Result<()> {
        self.on(&hold.namespace, |rules| rules.hold(hold))
    }

    /// [`crate::Store::recover`].
    pub fn recover(&mut self, namespace: &Namespace) -> Result<usize> {
        self.on(namespace, |rules| Ok(rules.recover()?.len()))
    }

    /// [`crate::Store::prune`].
    pub fn prune(&mut self, namespace: &Namespace, limit: usize) -> Result<(usize, usize)> {
        let book = self.vital_book(namespace)?;
        self.run(book, false, |rules| rules.prune(limit))
    }

    /// [`crate::Store::define`].
    pub fn define(&mut self, define: Define) -> Result<()> {
        define.check()?;
        match define {
            Define::Job(definition) => {
                let mut common = self.keeper.common()?;
                common.openness.check(self.keeper.place())?;
                common.define(definition)?;
                self.keeper.save_common(&common)
            }
            Define::Queue(namespace, settings) => {
                let (mut book, _) = self.find_or_new(&namespace)?;
                book.common().openness.check(self.keeper.place())?;
                book.set_settings(settings);
                self.keeper.save(book.into_contents())
            }
        }
    }

    /// [`crate::Store::job`].
    pub fn job(&mut self, id: &JobId) -> Result<Found> {
        let book = self.locate(id)?;
        let namespace = book.queue().namespace.clone();
        let job = self.look(book, |rules| rules.job(id))?;
        Ok(Found { namespace, job })
    }

    /// Runs a verb that changes nothing.
    fn look<T>(&mut self, mut book: Book, verb: impl FnOnce(&mut Rules<'_, Book>) -> Result<T>) -> Result<T> {
        let answer = verb(&mut Rules::new(&mut book, self.clock.now(), self.random.as_mut()))?;
        self.keeper.put_back(book.into_contents());
        Ok(answer)
    }

    /// [`crate::Store::key_holder`].
    pub fn key_holder(&mut self, namespace: &Namespace, key: &Label) -> Result<Option<JobId>> {
        match self.find(namespace)? {
            None => Ok(None),
            Some(book) => self.look(book, |rules| rules.key_holder(key)),
        }
    }

    /// [`crate::Store::jobs`].
    pub fn jobs(&mut self, filter: &JobFilter) -> Result<Page> {
        filter.check()?;
        let mut page = Page { jobs: Vec::new(), next: None, unreadable: Vec::new() };
        let mut books = Vec::new();
        match &filter.namespace {
            Some(namespace) => books.push(self.book(namespace)?),
            None => {
                for namespace in self.keeper.namespaces()? {
                    match self.find(&namespace) {
                        Ok(book) => books.extend(book),
                        Err(fault) if page.unreadable.contains(&fault) => {}
                        Err(fault) => page.unreadable.push(fault),
                    }
                }
            }
        }
        for book in books {
            let Contents { queue, jobs, .. } = book.contents();
            let found = jobs.values().filter(|job| takes(filter, &queue.namespace, job));
            page.jobs.extend(found.map(|job| Found { namespace: queue.namespace.clone(), job: job.clone() }));
            self.keeper.put_back(book.into_contents());
        }
        page.jobs.sort_by_key(|found| std::cmp::Reverse(found.job.row));
        let limit = filter.limit.clamp(1, 1_000);
        // Jobs that share a number, in files that were put together by hand, are not torn apart.
        let last = page.jobs.get(limit - 1).map(|last| last.job.row);
        page.jobs.retain(|found| last.is_none_or(|last| found.job.row >= last));
        page.next = last;
        Ok(page)
    }

    /// [`crate::Store::history`].
    pub fn history(&mut self, id: &JobId) -> Result<Vec<Entry>> {
        let book = self.locate(id)?;
        let row = book.job(id).map_or(0, |job| job.row);
        let history = book.history(row).cloned().collect();
        self.keeper.put_back(book.into_contents());
        Ok(history)
    }

    /// [`crate::Store::steps`].
    pub fn steps(&mut self, id: &JobId) -> Result<Vec<(String, Json)>> {
        let book = self.locate(id)?;
        self.look(book, |rules| rules.steps(id))
    }

    /// [`crate::Store::explain`].
    pub fn explain(&mut self, id: &JobId) -> Result<Explanation> {
        let book = self.locate(id)?;
        self.look(book, |rules| rules.explain(id))
    }

    /// [`crate::Store::lanes`].
    pub fn lanes(&mut self, filter: &LaneFilter) -> Result<Vec<LaneView>> {
        let book = self.book(&filter.namespace)?;
        self.look(book, |rules| rules.lanes(filter))
    }

    /// [`crate::Store::queues`].
    pub fn queues(&mut self, filter: &QueueFilter) -> Result<Overview> {
        let mut overview = Overview::default();
        for namespace in self.keeper.namespaces()?.into_iter().filter(|namespace| filter.takes(namespace)) {
            match self.find(&namespace) {
                Ok(None) => {}
                Ok(Some(mut book)) => {
                    if filter.activity.is_some() {
                        book.lend_vitals(self.keeper.vitals(&namespace)?);
                    }
                    self.look(book, |rules| rules.overview(filter, &mut overview))?;
                }
                Err(fault) if overview.unreadable.contains(&fault) => {}
                Err(fault) => overview.unreadable.push(fault),
            }
        }
        // By path, as a database would sort it, upper and lower case alike.
        overview.queues.sort_by_key(|(queue, _)| queue.namespace.to_string().to_ascii_lowercase());
        Ok(overview)
    }
}

fn takes(filter: &JobFilter, namespace: &Namespace, job: &Job) -> bool {
    let Job { row, identity, standing, .. } = job;
    filter.takes_status(namespace, standing.state, standing.business)
        && filter.lane.as_ref().is_none_or(|lane| identity.lane.as_ref() == Some(lane))
        && filter.key.as_ref().is_none_or(|key| identity.key.as_ref() == Some(key))
        && filter.since.is_none_or(|since| identity.created_at >= since)
        && filter.after_row.is_none_or(|after| *row < after)
}
