//! Word of changes: within the process at once, to other processes by NOTIFY, from them by LISTEN.
//!
//! A NOTIFY never travels in the transaction that it tells of: it would take away the commits that many share. It follows it, and
//! all that comes while one is under way goes with the next.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use acta_core::Namespace;
use acta_core::changes::Changes;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_postgres::AsyncMessage;

use super::connection::Connections;
use super::session::{params, statement};
use super::url::Url;

/// At most one NOTIFY in so long a time.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a probe may be on its way before nothing is thought to arrive.
const PROBE: Duration = Duration::from_secs(5);
/// How often it is looked whether word still arrives.
const PROBE_EVERY: Duration = Duration::from_secs(30);
/// How long nobody listens after it did not work: a pooler in transaction mode, say, carries no word at all.
const DEAF: Duration = Duration::from_mins(1);
/// How long nobody listens after the connection was lost.
const LOST: Duration = Duration::from_secs(1);

/// Who waits for what, and who is told.
#[derive(Debug)]
pub(super) struct Wake {
    changes: Arc<Changes>,
    db: Arc<Connections>,
    url: Url,
    /// What the next NOTIFY tells; whether one is under way.
    untold: Mutex<BTreeSet<Namespace>>,
    is_telling: AtomicBool,
    /// Ends the listener when it is dropped.
    listener: Mutex<Option<oneshot::Sender<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody panics while holding one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake {
    pub(super) fn new(db: Arc<Connections>, url: &Url) -> Self {
        Self {
            changes: Arc::default(),
            db,
            url: url.clone(),
            untold: Mutex::default(),
            is_telling: AtomicBool::new(false),
            listener: Mutex::default(),
        }
    }

    /// A claim in the namespace may find something now: for those of this process.
    pub(super) fn note(&self, namespace: &Namespace) {
        self.changes.note(namespace);
    }

    /// The same, for everybody.
    pub(super) fn tell(self: &Arc<Self>, namespace: &Namespace) {
        self.note(namespace);
        lock(&self.untold).insert(namespace.clone());
        if !self.is_telling.swap(true, Ordering::SeqCst) {
            tokio::spawn(Arc::clone(self).tell_others(Duration::ZERO));
        }
    }

    /// The caller's turn to send the word itself, right behind its call, so that it is out even if the process ends with the
    /// answer. Where somebody has it already, the word goes with the next that is sent.
    pub(super) fn take_turn(self: &Arc<Self>, namespace: &Namespace) -> Option<Turn> {
        if !self.is_telling.swap(true, Ordering::SeqCst) {
            return Some(Turn(Arc::clone(self)));
        }
        lock(&self.untold).insert(namespace.clone());
        None
    }

    /// Tells others, and waits until the word is out, or goes with the next that is sent.
    pub(super) async fn tell_now(self: &Arc<Self>, namespace: &Namespace) {
        if let Some(_turn) = self.take_turn(namespace) {
            let word = vec![namespace.to_string()];
            let _ = self.db.all(None, statement!("notify"), params![word => TEXT_ARRAY]).await;
        }
    }

    async fn tell_others(self: Arc<Self>, pause: Duration) {
        let telling = Telling(&self.is_telling);
        sleep(pause).await;
        loop {
            let untold = std::mem::take(&mut *lock(&self.untold));
            if untold.is_empty() {
                self.is_telling.store(false, Ordering::SeqCst);
                // Something may have come between the look and the store; then whoever sees it first goes on.
                if lock(&self.untold).is_empty() || self.is_telling.swap(true, Ordering::SeqCst) {
                    std::mem::forget(telling);
                    return;
                }
                continue;
            }
            let paths: Vec<String> = untold.iter().map(ToString::to_string).collect();
            // Whoever is not told polls.
            let _ = self.db.all(None, statement!("notify"), params![paths => TEXT_ARRAY]).await;
            sleep(PAUSE).await;
        }
    }

    /// The number that stands for how the namespace is, once it is another than `seen`.
    pub(super) async fn changed(self: &Arc<Self>, namespace: &Namespace, seen: Option<u64>) -> u64 {
        let watch = self.changes.watch(namespace);
        if seen.is_some() {
            self.listen();
        }
        watch.after(seen).await
    }

    /// Starts the listener, unless it runs.
    fn listen(self: &Arc<Self>) {
        let mut listener = lock(&self.listener);
        if listener.as_ref().is_none_or(oneshot::Sender::is_closed) {
            let (sender, ended) = oneshot::channel();
            *listener = Some(sender);
            let (wake, url) = (Arc::downgrade(self), self.url.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = listen_on(wake, url) => {}
                    _ = ended => {}
                }
            });
        }
    }
}

/// A task that tells others. If it is dropped before its end, with its runtime, the next word begins another.
struct Telling<'w>(&'w AtomicBool);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Somebody sends word by itself. When that is over, what came meanwhile is told after a pause.
pub(super) struct Turn(Arc<Wake>);

impl Drop for Turn {
    fn drop(&mut self) {
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(Arc::clone(&self.0).tell_others(PAUSE))),
            // Nobody is left to tell it.
            Err(_) => self.0.is_telling.store(false, Ordering::SeqCst),
        }
    }
}

/// Listens until nobody needs it any more, over as many connections as it takes.
async fn listen_on(wake: Weak<Wake>, url: Url) {
    while wake.strong_count() > 0 {
        let pause = match hear(&wake, &url).await {
            Heard::Nothing => DEAF,
            Heard::UntilLost => LOST,
        };
        // What was told meanwhile was not heard.
        if let Some(wake) = wake.upgrade() {
            wake.changes.note_all();
        }
        sleep(pause).await;
    }
}

/// How listening on one connection ended.
enum Heard {
    /// Not even what this process told itself arrived.
    Nothing,
    /// The connection was lost, or did not come about.
    UntilLost,
}

async fn hear(wake: &Weak<Wake>, url: &Url) -> Heard {
    let mut config = url.config();
    config.application_name("acta (listening)").connect_timeout(PROBE);
    let Ok(connector) = url.connector() else { return Heard::UntilLost };
    let Ok((client, mut connection)) = config.connect(connector).await else { return Heard::UntilLost };
    let (sender, mut words) = mpsc::unbounded_channel();
    let driven = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(word) = message
                && sender.send(word.payload().to_owned()).is_err()
            {
                return;
            }
        }
    });
    let probe = format!("?{}", std::process::id());
    let heard = async {
        if client.batch_execute("LISTEN acta").await.is_err() {
            return Heard::UntilLost;
        }
        let mut is_proved = false;
        loop {
            // It is sent over the pool, as all word is: so it shows that this connection hears what others tell.
            match wake.upgrade() {
                Some(wake) => {
                    let paths = vec![probe.clone()];
                    let _ = wake.db.all(None, statement!("notify"), params![paths => TEXT_ARRAY]).await;
                }
                None => return Heard::UntilLost,
            }
            match timeout(PROBE, listen_for(&probe, &mut words, wake)).await {
                Err(_) if is_proved => return Heard::UntilLost,
                Err(_) => return Heard::Nothing,
                Ok(false) => return Heard::UntilLost,
                Ok(true) => is_proved = true,
            }
            if let Ok(false) = timeout(PROBE_EVERY, listen_for("", &mut words, wake)).await {
                return Heard::UntilLost;
            }
        }
    };
    let heard = heard.await;
    driven.abort();
    heard
}

/// Passes word on until the awaited one comes; false if the connection is lost.
async fn listen_for(awaited: &str, words: &mut mpsc::UnboundedReceiver<String>, wake: &Weak<Wake>) -> bool {
    while let Some(word) = words.recv().await {
        if word == awaited {
            return true;
        }
        let Some(wake) = wake.upgrade() else { return false };
        match word.parse() {
            Ok(namespace) => wake.changes.note(&namespace),
            Err(_) if word.starts_with('?') => {}
            Err(_) => wake.changes.note_all(),
        }
    }
    false
}
