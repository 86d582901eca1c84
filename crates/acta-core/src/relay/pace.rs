//! When a relay looks again, and what becomes of a refused row.

use std::time::Duration;

use super::MOST_REFUSALS;
use crate::policy::{Backoff, Span};
use crate::random::Random;

/// How long a relay that found nothing waits, unless it is woken.
const IDLE_MS: u64 = 50;
/// How long one waits that has seen another one at work.
const STANDING_BY_MS: u64 = 250;
/// How long it waits when the ledger or the source does not answer: doubled each time, up to the most.
const FAILING_MS: u64 = 100;
const MOST_FAILING_MS: u64 = 15_000;
/// The delay behind a refusal, doubled each time.
const REFUSED: Backoff =
    Backoff::Doubling { initial: Span::of(Duration::from_secs(1)), max: Span::of(Duration::from_mins(1)) };

/// What becomes of a row that the ledger has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is tried again after so many milliseconds.
    Later(i64),
    /// It is put into quarantine.
    Quarantine,
}

/// What becomes of a row that was refused so many times before, and now again.
pub fn after_refusal(refusals_before: u32, random: &mut dyn Random) -> Next {
    let refusals = refusals_before.saturating_add(1);
    if refusals >= MOST_REFUSALS { Next::Quarantine } else { Next::Later(REFUSED.delay_ms(refusals, random)) }
}

/// What a relay has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing that may be delivered now.
    Nothing,
    /// Something, so that another look is due at once.
    Something,
    /// Rows of which none has gone: somebody has them locked, or they are to be tried again.
    Unmoved,
    /// Another relay at work.
    Another,
}

/// When a relay looks again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    failures: u32,
}

impl Pace {
    /// A look that went well; how long to wait before the next one.
    pub fn went_well(&mut self, found: Found) -> u64 {
        self.failures = 0;
        match found {
            Found::Nothing | Found::Unmoved => IDLE_MS,
            Found::Something => 0,
            Found::Another => STANDING_BY_MS,
        }
    }

    /// The source or the ledger did not answer; how long to wait.
    pub fn failed(&mut self) -> u64 {
        let pause = FAILING_MS.saturating_mul(1 << self.failures.min(16)).min(MOST_FAILING_MS);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Whether nothing has answered since the last look that went well.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    #[test]
    fn the_fifth_refusal_is_the_last() {
        let mut random = Seeded::new(1);
        let delays: Vec<Next> = (0..5).map(|before| after_refusal(before, &mut random)).collect();
        assert_eq!(delays[4], Next::Quarantine);
        for (delay, wanted) in delays.iter().zip([1_000, 2_000, 4_000, 8_000]) {
            let Next::Later(delay) = delay else { panic!("{delays:?}") };
            assert!((wanted * 9 / 10..=wanted * 11 / 10).contains(delay), "{delay} instead of {wanted}");
        }
    }

    #[test]
    fn an_outage_is_asked_after_ever_more_seldom() {
        let mut pace = Pace::default();
        assert_eq!((pace.went_well(Found::Nothing), pace.went_well(Found::Something)), (50, 0));
        let pauses: Vec<u64> = (0..10).map(|_| pace.failed()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000]);
        assert!(pace.is_failing());
        assert_eq!((pace.went_well(Found::Unmoved), pace.went_well(Found::Another)), (50, 250));
        assert!(!pace.is_failing());
    }
}
