//! A ledger in an SQLite file, safe among the processes of one machine.

#[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite"))]
mod caller;
mod codec;
mod connection;
mod desk;
#[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite"))]
mod driver;
mod fault;
mod list;
mod migrate;
#[cfg(test)]
mod plans;
mod port;
mod rows;
mod session;
mod standings;
mod vitals;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use acta_core::explain::{Explanation, LaneView};
use acta_core::history::Entry;
use acta_core::random::Random;
use acta_core::store::{
    Beat, Claim, ClaimAnswer, Define, Deliver, Delivered, Enqueue, Enqueued, Finding, Found, Heartbeats, Hold,
    JobFilter, LaneFilter, Mark, Operated, Operation, Overview, Page, Parcel, QueueFilter, Report, SettleAnswer, Wave,
};
use acta_core::{Changes, Clock, Error, JobId, Json, Label, Namespace, Result, Rules, Seeded, Store, SystemClock};
use async_trait::async_trait;

pub use connection::Synchronous;
use connection::{Db, statement};
use desk::Desk;
use rows::SqlRows;
use session::{Session, World};

use crate::filesystem;
use crate::migration::{Migration, Pending};
use crate::turn::Turn;

/// How a ledger is opened.
pub struct Options {
    /// When a commit is on disk.
    pub synchronous: Synchronous,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// Where ids and jitter come from; the operating system, if nothing is said.
    pub random: Option<Box<dyn Random>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { synchronous: Synchronous::Full, clock: Arc::new(SystemClock), random: None }
    }
}

/// A ledger in an SQLite file.
///
/// Open it once a process and share it: all writes of one store go through one thread and share commits. Other
/// processes may have the same file open.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    world: Arc<World>,
    writer: Desk,
    reader: Desk,
    changes: Arc<Changes>,
}

impl SqliteStore {
    /// Opens the ledger in `path`; makes file and folders if they are not there.
    ///
    /// Refuses a network file system, a newer or foreign schema, and a file that is no database.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        filesystem::make_parents(path)?;
        filesystem::refuse_network(path)?;
        let random = match options.random {
            Some(random) => random,
            None => Box::new(crate::random::system_random()?),
        };
        let world = Arc::new(World { clock: options.clock, random: Mutex::new(random) });
        let turn = Turn::of(path)?;
        // Making the file a write-ahead one takes a lock that does not wait: one process at a time.
        let db = turn.take(|| {
            let db = Db::open(path, options.synchronous, true)?;
            migrate::create_or_accept(&db)?;
            Ok(db)
        })?;
        // Reading draws no random numbers; a source of its own spares it the writer's lock.
        let beside = World { clock: Arc::clone(&world.clock), random: Mutex::new(Box::new(Seeded::new(0))) };
        let changes = Arc::new(Changes::default());
        let writer = Desk::writer(path, db, turn, Arc::clone(&world), Arc::clone(&changes))?;
        let reader = Desk::reader(path, Arc::new(beside), Arc::clone(&changes))?;
        Ok(Self { path: path.to_owned(), world, writer, reader, changes })
    }

    /// What the ledger in `path` lacks of this release's schema; all of it where there is no file.
    pub fn pending(path: impl AsRef<Path>) -> Result<Pending> {
        let path = path.as_ref();
        if path.exists() {
            migrate::pending(&Db::open(path, Synchronous::Full, false)?)
        } else {
            Ok(migrate::behind_version(None))
        }
    }

    /// Brings the ledger in `path` to this release's schema, making it if there is none; the migrations that were applied.
    pub fn migrate(path: impl AsRef<Path>) -> Result<Vec<&'static Migration>> {
        let path = path.as_ref();
        filesystem::make_parents(path)?;
        filesystem::refuse_network(path)?;
        Turn::of(path)?.take(|| migrate::migrate(&Db::open(path, Synchronous::Full, true)?))
    }

    /// The ledger's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whoever waits for work in the namespace may look: a transaction that is not this store's has put something there.
    ///
    /// Other processes see for themselves that somebody has committed.
    pub fn wake(&self, namespace: &Namespace) {
        self.changes.note(namespace);
    }

    /// A write, if the ledger takes any.
    async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Session<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer
            .run(|session| {
                session.check_open()?;
                operation(session)
            })
            .await
    }

    /// A verb that changes a namespace, which must exist.
    async fn change<T: Send + 'static>(
        &self,
        namespace: Namespace,
        verb: impl FnOnce(&mut Rules<'_, SqlRows<'_, '_>>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write(move |session| existing(session, &namespace, verb)).await
    }
}

/// A verb on the rows of a namespace that must exist.
fn existing<T>(
    session: &mut Session<'_>,
    namespace: &Namespace,
    verb: impl FnOnce(&mut Rules<'_, SqlRows<'_, '_>>) -> Result<T>,
) -> Result<T> {
    session.rules(namespace, verb)?.ok_or_else(|| Error::not_found("queue", &namespace.to_string()))
}

fn located(session: &mut Session<'_>, id: &JobId) -> Result<Namespace> {
    session.locate(id)?.ok_or_else(|| Error::not_found("job", id.as_str()))
}

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>> {
        self.write(move |session| {
            session.ensure_namespace(&enqueue.namespace)?;
            let answer = session.rules(&enqueue.namespace, |rules| rules.enqueue(&enqueue.jobs))?;
            answer.ok_or_else(|| Error::not_found("queue", &enqueue.namespace.to_string()))
        })
        .await
    }

    async fn deliver(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        self.write(move |session| {
            session.ensure_namespace(&deliver.namespace)?;
            let answer = session.rules(&deliver.namespace, |rules| rules.deliver(&deliver.deliveries))?;
            answer.ok_or_else(|| Error::not_found("queue", &deliver.namespace.to_string()))
        })
        .await
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer> {
        self.write(move |session| {
            let answer = session.rules(&claim.namespace, |rules| rules.claim(&claim))?;
            Ok(answer.unwrap_or_else(|| ClaimAnswer::no_such_queue(&claim)))
        })
        .await
    }

    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>> {
        self.change(wave.namespace, move |rules| rules.settle(&wave.settlements)).await
    }

    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        if wave.namespace != claim.namespace {
            let why = "is not the namespace of the claim";
            return Err(Error::invalid("namespace", &wave.namespace.to_string(), why));
        }
        self.write(move |session| {
            let answer = session.rules(&wave.namespace, |rules| rules.exchange(&wave.settlements, &claim))?;
            Ok(answer.unwrap_or_else(|| (wave.no_such_queue(), ClaimAnswer::no_such_queue(&claim))))
        })
        .await
    }

    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        self.change(beats.namespace.clone(), move |rules| rules.heartbeat(&beats)).await
    }

    async fn report(&self, report: Report) -> Result<()> {
        self.change(report.namespace.clone(), move |rules| rules.report(&report)).await
    }

    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        self.change(operation.namespace.clone(), move |rules| rules.operate(&operation)).await
    }

    async fn hold(&self, hold: Hold) -> Result<()> {
        self.change(hold.namespace.clone(), move |rules| rules.hold(&hold)).await
    }

    async fn recover(&self, namespace: Namespace) -> Result<usize> {
        self.change(namespace, |rules| Ok(rules.recover()?.len())).await
    }

    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)> {
        self.change(namespace, move |rules| rules.prune(limit)).await
    }

    async fn define(&self, define: Define) -> Result<()> {
        define.check()?;
        self.write(move |session| match define {
            Define::Job(definition) => session.define(&definition),
            Define::Queue(namespace, settings) => session.configure(&namespace, &settings),
        })
        .await
    }

    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        let watch = self.changes.watch(&namespace);
        if seen.is_some() {
            self.reader.nudge();
        }
        Ok(watch.after(seen).await)
    }

    async fn job(&self, id: JobId) -> Result<Found> {
        self.reader
            .run(move |session| {
                let namespace = located(session, &id)?;
                let found = session.rules(&namespace, |rules| rules.job(&id))?;
                let job = found.ok_or_else(|| Error::not_found("job", id.as_str()))?;
                Ok(Found { namespace, job })
            })
            .await
    }

    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>> {
        self.reader.run(move |session| Ok(session.rules(&namespace, |rules| rules.key_holder(&key))?.flatten())).await
    }

    async fn jobs(&self, filter: JobFilter) -> Result<Page> {
        self.reader.run(move |session| list::page(session, &filter)).await
    }

    async fn history(&self, id: JobId) -> Result<Vec<Entry>> {
        self.reader
            .run(move |session| {
                let namespace = located(session, &id)?;
                let job = session.rules(&namespace, |rules| rules.job(&id))?;
                let row = job.map_or(0, |job| job.row);
                session.db.all(statement!("history"), [row.cast_signed()], codec::entry)
            })
            .await
    }

    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>> {
        self.reader
            .run(move |session| {
                let namespace = located(session, &id)?;
                Ok(session.rules(&namespace, |rules| rules.steps(&id))?.unwrap_or_default())
            })
            .await
    }

    async fn explain(&self, id: JobId) -> Result<Explanation> {
        self.reader
            .run(move |session| {
                let namespace = located(session, &id)?;
                let told = session.rules(&namespace, |rules| rules.explain(&id))?;
                told.ok_or_else(|| Error::not_found("job", id.as_str()))
            })
            .await
    }

    async fn lanes(&self, filter: LaneFilter) -> Result<Vec<LaneView>> {
        self.reader.run(move |session| existing(session, &filter.namespace, |rules| rules.lanes(&filter))).await
    }

    async fn queues(&self, filter: QueueFilter) -> Result<Overview> {
        self.reader
            .run(move |session| {
                let rows = session.db.all(statement!("namespaces"), [], session::queue_columns)?;
                let mut overview = Overview::default();
                for columns in rows {
                    let (_, queue) = session.queue_of(columns)?;
                    if filter.takes(&queue.namespace) {
                        session.rules(&queue.namespace, |rules| rules.overview(&filter, &mut overview))?;
                    }
                }
                Ok(overview)
            })
            .await
    }

    async fn export(&self, namespace: Option<Namespace>) -> Result<Parcel> {
        self.reader.run(move |session| port::export(session, namespace.as_ref())).await
    }

    async fn import(&self, parcel: Parcel) -> Result<()> {
        self.writer.run(move |session| port::import(session, &parcel)).await
    }

    async fn mark(&self, mark: Mark) -> Result<()> {
        let clock = Arc::clone(&self.world.clock);
        self.writer.run(move |session| port::mark(session, &mark, clock.now())).await?;
        self.changes.note_all();
        Ok(())
    }

    async fn backup(&self, path: PathBuf) -> Result<()> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let from = self.path.clone();
        let gone = || Error::Unavailable { place: self.path.display().to_string(), why: "no thread".into() };
        std::thread::Builder::new()
            .name("acta-backup".into())
            .spawn(move || sender.send(port::backup(&from, &path)))
            .map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())?
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        let path = self.path.clone();
        self.reader.run(move |session| port::examine(session, &path)).await
    }

    fn is_parallel(&self) -> bool {
        false
    }
}
