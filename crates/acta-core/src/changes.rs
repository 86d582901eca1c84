//! Word of changes: how whoever waits for work in a namespace hears that there may be some.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use event_listener::Event;

use crate::name::Namespace;

/// Who waits for changes of which namespaces, and how often each has changed.
///
/// A store notes a change once it is durable. A namespace that nobody has ever asked about costs nothing.
#[derive(Debug, Default)]
pub struct Changes {
    places: Mutex<BTreeMap<Namespace, Arc<Place>>>,
}

#[derive(Debug, Default)]
struct Place {
    /// Stands for how things are; raised by every change.
    number: AtomicU64,
    event: Event,
    waiting: AtomicUsize,
}

impl Place {
    fn raise(&self) {
        self.number.fetch_add(1, Ordering::SeqCst);
        self.event.notify(usize::MAX);
    }
}

/// Somebody who waits for changes of a namespace, until it is dropped.
#[derive(Debug)]
pub struct Watch(Arc<Place>);

impl Watch {
    /// The number that stands for how things are, once it is another than `seen`.
    pub async fn after(&self, seen: Option<u64>) -> u64 {
        loop {
            // Before looking: what changes in between is heard.
            let listener = self.0.event.listen();
            let number = self.0.number.load(Ordering::SeqCst);
            if seen != Some(number) {
                return number;
            }
            listener.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Changes {
    /// A claim in the namespace may find something now that it did not find before.
    pub fn note(&self, namespace: &Namespace) {
        if let Some(place) = self.lock().get(namespace) {
            place.raise();
        }
    }

    /// The same, of every namespace: somebody has changed something, and nobody knows what.
    pub fn note_all(&self) {
        for place in self.lock().values() {
            place.raise();
        }
    }

    /// The namespaces that somebody waits for now.
    pub fn awaited(&self) -> Vec<Namespace> {
        let is_awaited = |(_, place): &(&Namespace, &Arc<Place>)| place.waiting.load(Ordering::SeqCst) > 0;
        self.lock().iter().filter(is_awaited).map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Whether anybody waits for anything.
    pub fn is_awaited(&self) -> bool {
        self.lock().values().any(|place| place.waiting.load(Ordering::SeqCst) > 0)
    }

    /// Counts the caller as one who waits for changes of the namespace.
    pub fn watch(&self, namespace: &Namespace) -> Watch {
        let place = Arc::clone(self.lock().entry(namespace.clone()).or_default());
        place.waiting.fetch_add(1, Ordering::SeqCst);
        Watch(place)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Namespace, Arc<Place>>> {
        // Nobody panics while holding it.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
