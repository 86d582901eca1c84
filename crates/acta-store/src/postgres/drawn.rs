//! Randomness that is handed in: the functions of the database use of it what they need.

use std::collections::VecDeque;

use acta_core::Random;
use tokio::sync::MutexGuard;

/// Numbers of a source that were drawn, and perhaps not used yet.
pub(super) struct Drawn {
    source: Box<dyn Random>,
    kept: VecDeque<u64>,
}

/// The numbers of a call. Where no source is handed in there are none, and the database draws its own.
pub(super) struct Words<'s>(pub(super) Option<MutexGuard<'s, Drawn>>);

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drawn").field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

impl Drawn {
    pub(super) fn new(source: Box<dyn Random>) -> Self {
        Self { source, kept: VecDeque::new() }
    }
}

impl Words<'_> {
    /// The next `count` numbers, which stay the next ones until they are taken.
    pub(super) fn peek<T>(&mut self, count: usize, of: impl Fn(u64) -> T) -> Option<Vec<T>> {
        let drawn = self.0.as_mut()?;
        while drawn.kept.len() < count {
            let next = drawn.source.next_u64();
            drawn.kept.push_back(next);
        }
        Some(drawn.kept.iter().take(count).map(|&word| of(word)).collect())
    }

    /// The first `count` numbers were used.
    pub(super) fn take(&mut self, count: usize) {
        if let Some(drawn) = &mut self.0 {
            let count = count.min(drawn.kept.len());
            drawn.kept.drain(..count);
        }
    }
}
