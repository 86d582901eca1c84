//! The one thread of a process that writes, and the one that reads.
//!
//! Whatever waits when the writer comes round goes into one transaction, each operation in a savepoint of its own, and
//! all are answered when that transaction has committed: concurrent callers share the price of one commit.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use acta_core::{Changes, Error, Result};
use tokio::sync::oneshot;

use super::connection::{Db, Synchronous};
use super::session::{Memory, Session, World};
use crate::failpoint::failpoint;
use crate::turn::Turn;

/// How many operations share a commit at the most.
const MOST_OPERATIONS: usize = 256;
/// How long a group goes on taking operations in, so that other processes get their turn.
const MOST_TIME: Duration = Duration::from_millis(20);

/// An operation on its way: first run inside a transaction, then answered when that transaction's fate is known.
trait Work: Send {
    /// An error here is that of the whole transaction, which is gone with everything in it.
    fn run(&mut self, session: &mut Session<'_>) -> Result<()>;
    /// Tells the caller: its own answer if the transaction has committed, else why it has not.
    fn answer(self: Box<Self>, committed: Result<()>);
}

struct Call<F, T> {
    operation: Option<F>,
    answer: Option<Result<T>>,
    sender: oneshot::Sender<Result<T>>,
}

impl<F, T> Work for Call<F, T>
where
    F: FnOnce(&mut Session<'_>) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, session: &mut Session<'_>) -> Result<()> {
        if let Some(operation) = self.operation.take() {
            self.answer = Some(session.operation(operation)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let told = match (committed, self.answer) {
            (Ok(()), Some(answer)) => answer,
            (Err(fault), _) => Err(fault),
            (Ok(()), None) => {
                Err(Error::Unavailable { place: "the ledger".into(), why: "the operation did not run".into() })
            }
        };
        // The caller may have stopped waiting.
        let _ = self.sender.send(told);
    }
}

/// Nothing to do but to come round.
struct Nudge;

impl Work for Nudge {
    fn run(&mut self, _session: &mut Session<'_>) -> Result<()> {
        Ok(())
    }

    fn answer(self: Box<Self>, _committed: Result<()>) {}
}

/// A thread with a connection of its own.
#[derive(Debug)]
pub(super) struct Desk {
    sender: Sender<Box<dyn Work>>,
    place: String,
}

impl Desk {
    /// The thread that writes.
    pub(super) fn writer(path: &Path, db: Db, turn: Turn, world: Arc<World>, changes: Arc<Changes>) -> Result<Self> {
        let writer = Writer { db, turn, memory: Memory::default(), world, changes };
        Self::spawn(path, "acta-writer", move |receiver| writer.work(&receiver))
    }

    /// The thread that reads; it sees what was committed before each operation.
    pub(super) fn reader(path: &Path, world: Arc<World>, changes: Arc<Changes>) -> Result<Self> {
        let db = Db::open(path, Synchronous::Full, false)?;
        let reader = Reader { version: db.data_version()?, db, world, changes, looked: Instant::now() };
        Self::spawn(path, "acta-reader", move |receiver| reader.work(&receiver))
    }

    /// Lets the thread look whether anybody waits.
    pub(super) fn nudge(&self) {
        // Where the thread has ended, the next operation is told.
        let _ = self.sender.send(Box::new(Nudge));
    }

    fn spawn(path: &Path, name: &str, work: impl FnOnce(Receiver<Box<dyn Work>>) + Send + 'static) -> Result<Self> {
        let place = path.display().to_string();
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(receiver))
            .map_err(|fault| Error::Unavailable { place: place.clone(), why: format!("no thread: {fault}") })?;
        Ok(Self { sender, place })
    }

    /// Runs an operation and waits until it is durable. An operation that was begun is not undone when the caller
    /// stops waiting.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Session<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let call = Call { operation: Some(operation), answer: None, sender };
        let gone = || Error::Unavailable { place: self.place.clone(), why: "its thread has ended".into() };
        self.sender.send(Box::new(call)).map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())?
    }
}

/// How long a thread looks for the next operation before it sleeps: whoever calls again as soon as it is answered finds
/// it awake, and spares both the price of a wake-up.
const MOST_LOOKING: Duration = Duration::from_micros(100);

/// The next operation; `None` when nobody can send one any more.
fn next(receiver: &Receiver<Box<dyn Work>>) -> Option<Box<dyn Work>> {
    let start = Instant::now();
    while start.elapsed() < MOST_LOOKING {
        match receiver.try_recv() {
            Ok(work) => return Some(work),
            Err(TryRecvError::Disconnected) => return None,
            // Whoever else has work goes first.
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    receiver.recv().ok()
}

struct Writer {
    db: Db,
    turn: Turn,
    memory: Memory,
    world: Arc<World>,
    changes: Arc<Changes>,
}

impl Writer {
    fn work(mut self, receiver: &Receiver<Box<dyn Work>>) {
        while let Some(first) = next(receiver) {
            let mut group = vec![first];
            let outcome = self.commit(&mut group, receiver);
            if outcome.is_err() {
                self.memory = Memory::default();
                if !self.db.raw.is_autocommit() {
                    // Whatever failed may have left the transaction open; nothing of it may stay.
                    let _ = self.db.command("ROLLBACK");
                }
            }
            for work in group {
                work.answer(outcome.clone());
            }
        }
    }

    /// One transaction with the first of the group and all that waits, within bounds.
    fn commit(&mut self, group: &mut Vec<Box<dyn Work>>, receiver: &Receiver<Box<dyn Work>>) -> Result<()> {
        let Self { db, turn, memory, world, changes } = self;
        let mut session = turn.take(|| Session::begin(db, memory, world, "BEGIN IMMEDIATE"))?;
        failpoint("begin");
        let start = Instant::now();
        let mut done = 0;
        loop {
            while let Some(work) = group.get_mut(done) {
                work.run(&mut session)?;
                done += 1;
            }
            if done >= MOST_OPERATIONS || start.elapsed() >= MOST_TIME {
                break;
            }
            let Ok(work) = receiver.try_recv() else { break };
            group.push(work);
        }
        session.finish()?;
        let woken = std::mem::take(&mut session.woken);
        failpoint("commit");
        db.command("COMMIT")?;
        for namespace in &woken {
            changes.note(namespace);
        }
        failpoint("committed");
        Ok(())
    }
}

/// How often the reader looks for commits of other processes while somebody waits for work.
const LOOK: Duration = Duration::from_millis(25);

struct Reader {
    db: Db,
    world: Arc<World>,
    changes: Arc<Changes>,
    /// Stands for all commits that were seen, whoever made them.
    version: i64,
    looked: Instant,
}

impl Reader {
    fn work(mut self, receiver: &Receiver<Box<dyn Work>>) {
        let mut memory = Memory::default();
        loop {
            let is_awaited = self.changes.is_awaited();
            let next = if is_awaited {
                receiver.recv_timeout(LOOK)
            } else {
                receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match next {
                Ok(work) => self.read(&mut memory, work),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if is_awaited && self.looked.elapsed() >= LOOK {
                self.look();
            }
        }
    }

    fn read(&self, memory: &mut Memory, mut work: Box<dyn Work>) {
        let begun = Session::begin(&self.db, memory, &self.world, "BEGIN");
        let outcome = begun.and_then(|mut session| work.run(&mut session));
        // Nothing was written; this only lets the snapshot go.
        let _ = self.db.command("ROLLBACK");
        work.answer(outcome);
    }

    /// The number is that of this process's own commits, too: they wake more often than they have to.
    fn look(&mut self) {
        self.looked = Instant::now();
        // Whoever waits has a poll of its own, should this fail.
        if let Ok(version) = self.db.data_version()
            && version != self.version
        {
            self.version = version;
            self.changes.note_all();
        }
    }
}
