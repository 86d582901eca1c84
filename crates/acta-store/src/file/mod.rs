//! A ledger in plain JSON files that people read, compare and mend, safe among the processes of one machine.
//!
//! Each namespace is one file: `queues/<queue>.json`, `transactions/<queue>.json`, `<name>.json`, with `items` as
//! everybody sees them and, beside them, what else the ledger keeps. A change takes the lock of the root, reads the
//! file, writes it anew beside the old one and lets it take its place. It is for small queues: every call reads its whole
//! file.

mod aside;
mod backup;
mod disk;
mod document;
mod keeper;
mod line;
mod mend;
mod text;
mod vitals;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use acta_core::random::Random;
use acta_core::shelf::{Access, Shared, Shelf};
use acta_core::{Changes, Clock, Error, Namespace, Result, SystemClock};
use tokio::sync::oneshot;

pub use keeper::{Files, Traffic};

use crate::filesystem;

/// How a ledger is opened.
pub struct Options {
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// Where ids and jitter come from; the operating system, if nothing is said.
    pub random: Option<Box<dyn Random>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), random: None }
    }
}

type Work = Box<dyn FnOnce(&mut Shelf<Files>) + Send>;

/// How long the lock is kept for the next call of a caller that has just been answered: a file that nobody else has
/// changed need not be read anew.
const LINGER: Duration = Duration::from_millis(2);
/// How long it is kept at the most, so that other processes get their turn.
const MOST_TIME: Duration = Duration::from_millis(100);

/// A ledger in the files of a folder.
#[derive(Debug)]
pub struct FileStore {
    root: PathBuf,
    changes: Arc<Changes>,
    sender: Sender<Work>,
}

impl FileStore {
    /// Opens the ledger in the folder `root`, which need not be there: it is made by the first change.
    ///
    /// Refuses a network file system.
    pub fn open(root: impl AsRef<Path>, options: Options) -> Result<Self> {
        let root = root.as_ref().to_owned();
        if root.exists() && !root.is_dir() {
            return Err(disk::unavailable(&root, "is not a folder"));
        }
        filesystem::refuse_network(&root.join("queues"))?;
        let random = match options.random {
            Some(random) => random,
            None => Box::new(crate::random::system_random()?),
        };
        let shelf = Shelf::new(Files::new(root.clone(), Arc::clone(&options.clock)), options.clock, random);
        let changes = Arc::clone(shelf.changes());
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("acta-files".into())
            .spawn(move || work(shelf, &receiver))
            .map_err(|fault| disk::unavailable(&root, format!("no thread: {fault}")))?;
        Ok(Self { root, changes, sender })
    }

    /// The ledger's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How often files of namespaces were read and written through this store.
    pub async fn traffic(&self) -> Result<Traffic> {
        self.run(Access::Look, |shelf| Ok(shelf.keeper.traffic)).await
    }

    fn gone(&self) -> Error {
        disk::unavailable(&self.root, "its thread has ended")
    }
}

/// How often the files are looked at while somebody waits for work in them.
const LOOK: Duration = Duration::from_millis(25);

fn work(mut shelf: Shelf<Files>, receiver: &Receiver<Work>) {
    let changes = Arc::clone(shelf.changes());
    let mut looked = Instant::now();
    loop {
        let lingers = shelf.keeper.locked_for().is_some_and(|since| since < MOST_TIME);
        let next = if lingers {
            receiver.recv_timeout(LINGER)
        } else {
            shelf.keeper.unlock();
            if changes.is_awaited() {
                receiver.recv_timeout(LOOK)
            } else {
                receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
            }
        };
        match next {
            Ok(work) => work(&mut shelf),
            Err(RecvTimeoutError::Timeout) => shelf.keeper.unlock(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if looked.elapsed() >= LOOK {
            changes.awaited().iter().for_each(|namespace| look(&mut shelf, namespace));
            looked = Instant::now();
        }
    }
}

/// Tells whoever waits for work in the namespace that its file is not the one that was there at the last look.
fn look(shelf: &mut Shelf<Files>, namespace: &Namespace) {
    if shelf.keeper.is_replaced(namespace) {
        shelf.changes().note(namespace);
    }
}

impl Shared for FileStore {
    type Keeper = Files;

    async fn run<T: Send + 'static>(
        &self,
        access: Access,
        verb: impl FnOnce(&mut Shelf<Files>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let work = move |shelf: &mut Shelf<Files>| {
            // Who only looks needs no lock: a file is replaced as a whole.
            let is_ready = if access == Access::Change { shelf.keeper.lock() } else { Ok(()) };
            let answer = is_ready.and_then(|()| verb(shelf));
            // The caller may have stopped waiting.
            let _ = sender.send(answer);
        };
        self.sender.send(Box::new(work)).map_err(|_| self.gone())?;
        receiver.await.map_err(|_| self.gone())?
    }

    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        let watch = self.changes.watch(&namespace);
        // Also lets the thread see that somebody waits.
        self.run(Access::Look, move |shelf| {
            look(shelf, &namespace);
            Ok(())
        })
        .await?;
        Ok(watch.after(seen).await)
    }
}
