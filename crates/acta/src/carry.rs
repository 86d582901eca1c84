//! Single enqueues that travel together.
//!
//! While a call is under way, whatever else is to be enqueued gathers and goes with the next one: no timer, and nobody
//! waits who is alone. Each job is answered by itself: where a batch is refused its jobs are tried one by one, so that
//! nobody hears of another's fault.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acta_core::store::{Enqueue, Enqueued, NewJob};
use acta_core::{Error, Namespace, Result, Store};
use tokio::sync::oneshot;

/// How many jobs one call carries at the most.
const MOST_JOBS: usize = 1_000;
/// How many bytes of payloads it carries, but for the last one: a long call holds up whoever comes after it.
const MOST_BYTES: usize = 4 * 1024 * 1024;

struct Letter {
    job: NewJob,
    sender: oneshot::Sender<Result<Enqueued>>,
}

/// What waits for the next call, by namespace. A namespace is there as long as somebody carries for it.
#[derive(Default)]
pub(crate) struct Carrier {
    lines: Mutex<HashMap<Namespace, Vec<Letter>>>,
}

impl Carrier {
    /// Enqueues a job; others may go with it. A job whose caller stops waiting may be enqueued all the same.
    pub(crate) async fn send(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        namespace: Namespace,
        job: NewJob,
    ) -> Result<Enqueued> {
        let (sender, receiver) = oneshot::channel();
        if self.add(&namespace, Letter { job, sender }) {
            let round = Round { carrier: Arc::clone(self), namespace, is_over: false };
            tokio::spawn(carry(round, Arc::clone(store)));
        }
        let gone = || Error::Unavailable { place: "the ledger".into(), why: "the call was dropped".into() };
        receiver.await.map_err(|_| gone())?
    }

    /// Adds to the line; whether nobody carries for it yet.
    fn add(&self, namespace: &Namespace, letter: Letter) -> bool {
        let mut lines = self.lines();
        if let Some(line) = lines.get_mut(namespace) {
            line.push(letter);
            return false;
        }
        lines.insert(namespace.clone(), vec![letter]);
        true
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Namespace, Vec<Letter>>> {
        // Nobody panics while holding it.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who carries for a namespace until nothing waits. If it is dropped before, with its runtime, whoever waits is
/// told so and the next one begins anew.
struct Round {
    carrier: Arc<Carrier>,
    namespace: Namespace,
    /// The line is off the list; another round may have begun.
    is_over: bool,
}

impl Round {
    /// What goes with the next call; nothing is the end of the round.
    fn next(&mut self) -> Vec<Letter> {
        let mut lines = self.carrier.lines();
        let mut line = lines.get_mut(&self.namespace).map(std::mem::take).unwrap_or_default();
        if line.is_empty() {
            lines.remove(&self.namespace);
            self.is_over = true;
            return line;
        }
        let rest = line.split_off(of_one_call(&line));
        lines.insert(self.namespace.clone(), rest);
        line
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if !self.is_over {
            self.carrier.lines().remove(&self.namespace);
        }
    }
}

/// How many of the first of a line go with one call.
fn of_one_call(line: &[Letter]) -> usize {
    let mut bytes = 0;
    let fits = |letter: &&Letter| {
        let is_room_left = bytes < MOST_BYTES;
        bytes += letter.job.payload.as_str().len();
        is_room_left
    };
    line.iter().take(MOST_JOBS).take_while(fits).count()
}

async fn carry(mut round: Round, store: Arc<dyn Store>) {
    loop {
        let letters = round.next();
        if letters.is_empty() {
            return;
        }
        deliver(&*store, &round.namespace, letters).await;
        // Those who were just answered may have the next one at hand: it goes with what has gathered meanwhile.
        tokio::task::yield_now().await;
    }
}

async fn deliver(store: &dyn Store, namespace: &Namespace, letters: Vec<Letter>) {
    let is_alone = letters.len() == 1;
    let jobs = letters.iter().map(|letter| letter.job.clone()).collect();
    let answers = match store.enqueue(Enqueue { namespace: namespace.clone(), jobs }).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(fault) if is_alone || !fault.is_of_one_job() => vec![Err(fault.alone()); letters.len()],
        // One was refused and with it all: each for itself.
        Err(_) => {
            for letter in letters {
                Box::pin(deliver(store, namespace, vec![letter])).await;
            }
            return;
        }
    };
    for (letter, answer) in letters.into_iter().zip(answers) {
        // The caller may have stopped waiting.
        let _ = letter.sender.send(answer);
    }
}
