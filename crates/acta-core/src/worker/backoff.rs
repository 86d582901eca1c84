//! How long a worker waits before it repeats a call that was not done. It never gives up.

use crate::policy::{Backoff, Span};
use crate::random::Random;

/// Calls that fail one after the other, and when the next may be made.
#[derive(Debug)]
pub(super) struct Retry {
    policy: Backoff,
    failures: u32,
    next_ms: u64,
}

impl Retry {
    /// For a substrate that is out of reach: soon at first, so that a restart is hardly noticed.
    pub(super) fn of_outage() -> Self {
        Self::doubling(100, 5_000)
    }

    /// For what was refused and will be until somebody changes something.
    pub(super) fn of_refusal() -> Self {
        Self::doubling(5_000, 60_000)
    }

    fn doubling(initial_ms: i64, max_ms: i64) -> Self {
        let policy = Backoff::Doubling { initial: Span::from_millis(initial_ms), max: Span::from_millis(max_ms) };
        Self { policy, failures: 0, next_ms: 0 }
    }

    /// A call was not done; in how many milliseconds the next may be made.
    pub(super) fn failed(&mut self, now_ms: u64, random: &mut dyn Random) -> u64 {
        self.failures = self.failures.saturating_add(1);
        let delay_ms = self.policy.delay_ms(self.failures, random).unsigned_abs();
        self.next_ms = now_ms + delay_ms;
        delay_ms
    }

    /// A call was done; whether the one before was not.
    pub(super) fn succeeded(&mut self) -> bool {
        self.next_ms = 0;
        std::mem::take(&mut self.failures) > 0
    }

    /// Whether the last call was not done.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// From when on the next call may be made.
    pub(super) fn next_ms(&self) -> u64 {
        self.next_ms
    }
}
