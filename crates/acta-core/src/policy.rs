//! What a queue or a job definition says about its jobs, and the back-off between attempts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::name::{Family, Label, Name};
use crate::random::Random;

/// How many lost leases in a row a job survives. The next one ends it, so that an input which kills its robot
/// can't do so for ever.
pub const MOST_LOST_LEASES: u32 = 5;
/// How many due jobs one claim or recover brings in at the most.
pub const MOST_DUE: usize = 1_000;
/// How many jobs one call may claim, settle or operate on.
pub const MOST_PER_CALL: usize = 10_000;
/// How many jobs one call may enqueue: all of a file or none of it.
pub const MOST_ENQUEUED: usize = 250_000;
/// The priority of a job that does not say one.
pub const DEFAULT_PRIORITY: u8 = 50;
/// The highest priority.
pub const MOST_PRIORITY: u8 = 100;
/// How long a finished job is kept unless its definition or queue says otherwise.
pub const RETENTION: Span = Span(30 * 86_400_000);
/// How long after a job's end its deduplication key still answers.
pub const TOMBSTONE: Span = Span(90 * 86_400_000);
/// How often a worker tells the ledger that it is there, if it has nothing else to tell.
pub const WORKER_PAUSE: Span = Span(30_000);
/// After what silence a worker is taken for dead: three of these pauses.
pub const WORKER_LOST: Span = Span(3 * WORKER_PAUSE.0);
/// After what silence a worker is forgotten.
pub const WORKER_KEPT: Span = Span(86_400_000);
/// How many minutes are kept of what happened: a day.
pub const MINUTES_KEPT: usize = 24 * 60;
/// How many workers of a namespace are shown.
pub const MOST_WORKERS: usize = 1_000;

/// Refuses a priority where there are none, and one beyond the highest.
pub fn check_priority(family: Family, priority: u8) -> Result<(), Error> {
    if !family.has_priority() {
        let why = "is refused here: a queue works in insertion order, only a plain namespace has priorities";
        return Err(Error::invalid("priority", &priority.to_string(), why));
    }
    if priority > MOST_PRIORITY {
        let why = format!("is not between 0 and {MOST_PRIORITY}");
        return Err(Error::invalid("priority", &priority.to_string(), why));
    }
    Ok(())
}

/// Refuses a budget without an attempt.
pub fn check_budget(max_attempts: Option<u32>) -> Result<(), Error> {
    match max_attempts {
        Some(0) => Err(Error::invalid("maxAttempts", "0", "leaves no attempt at all")),
        _ => Ok(()),
    }
}

/// Refuses a lease of no length: it would have lapsed when it is handed out.
pub fn check_lease(lease: Option<Span>) -> Result<(), Error> {
    match lease {
        Some(lease) if lease.as_millis() == 0 => Err(Error::invalid("lease", &lease.to_string(), "is no time at all")),
        _ => Ok(()),
    }
}

/// A length of time, at most 1,000 years. Written `90s`, `10m`, `2h`, `7d` or `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    const UNITS: [(&'static str, i64); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    const MOST_MS: i64 = 365_000 * 86_400_000;

    /// `millis` milliseconds, cut to the range.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, Self::MOST_MS))
    }

    /// The same length, to the millisecond, cut to the range.
    pub const fn of(duration: std::time::Duration) -> Self {
        let millis = duration.as_millis();
        #[expect(clippy::cast_possible_truncation, reason = "it is within the range")]
        if millis > Self::MOST_MS as u128 { Self(Self::MOST_MS) } else { Self(millis as i64) }
    }

    /// Its length in milliseconds.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Its length for a timer.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.unsigned_abs())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&(_, millis): &(&str, i64)| self.0 != 0 && self.0 % millis == 0;
        let (unit, millis) = Self::UNITS.into_iter().find(fits).unwrap_or(("s", 1_000));
        write!(f, "{}{unit}", self.0 / millis)
    }
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fault = || Error::invalid("duration", text, "is not a number with a unit, like 90s, 10m, 2h, 7d or 250ms");
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: i64 = number.parse().map_err(|_| fault())?;
        let (_, millis) = Self::UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(fault)?;
        match number.checked_mul(millis) {
            Some(millis) if millis <= Self::MOST_MS => Ok(Self(millis)),
            _ => Err(Error::invalid("duration", text, "is longer than 1000 years")),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The delay before a failed job is a candidate again: `initial`, doubling to `max`, each ± 10 %; or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// At once.
    None,
    /// Doubling.
    Doubling {
        /// After the first attempt.
        initial: Span,
        /// Never more than this (before the ± 10 %).
        max: Span,
    },
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Doubling { initial: Span(1_000), max: Span(300_000) }
    }
}

impl Backoff {
    /// A delay that begins with `initial` and doubles to `max`.
    pub const fn doubling(initial: std::time::Duration, max: std::time::Duration) -> Self {
        Self::Doubling { initial: Span::of(initial), max: Span::of(max) }
    }

    /// The delay after attempt number `attempts` (from 1) failed, in milliseconds.
    pub fn delay_ms(self, attempts: u32, random: &mut dyn Random) -> i64 {
        match self {
            Self::None => 0,
            Self::Doubling { initial, max } => {
                let doublings = attempts.saturating_sub(1).min(62);
                let grown = initial.0.max(1).saturating_mul(1_i64 << doublings);
                let base = grown.min(max.0.max(1));
                (base + jitter_ms(base, random)).max(1)
            }
        }
    }
}

/// Up to a tenth of `base`, either way.
fn jitter_ms(base: i64, random: &mut dyn Random) -> i64 {
    let tenth = base / 10;
    let width = 2 * tenth.unsigned_abs() + 1;
    i64::try_from(random.next_u64() % width).unwrap_or_default() - tenth
}

/// A delay that somebody asked for, spread so that many do not come back at once: never earlier, at most a tenth later.
pub(crate) fn asked_delay_ms(asked: Span, random: &mut dyn Random) -> i64 {
    asked.0 + jitter_ms(asked.0, random).abs()
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "\"none\" or an object like {\"initial\": \"1s\", \"max\": \"5m\"}")]
enum BackoffText {
    Word(String),
    Doubling(DoublingText),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DoublingText {
    initial: Span,
    max: Span,
}

impl Serialize for Backoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::None => BackoffText::Word("none".into()),
            Self::Doubling { initial, max } => BackoffText::Doubling(DoublingText { initial, max }),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Backoff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match BackoffText::deserialize(deserializer)? {
            BackoffText::Word(word) if word == "none" => Ok(Self::None),
            BackoffText::Word(_) => Err(serde::de::Error::custom("the only word for a back-off is \"none\"")),
            BackoffText::Doubling(DoublingText { initial, max }) => Ok(Self::Doubling { initial, max }),
        }
    }
}

/// What a job definition says about its jobs. An enqueue that names the definition gets what it leaves open from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name, the `name` of its jobs.
    pub name: Name,
    /// The lane of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Label>,
    /// Their priority; plain namespaces only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How many claims count against their budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Whether a failure may go back to the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The delay between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The lease of a claim that does not ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// How long finished jobs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Span>,
}

impl Definition {
    /// A definition that leaves everything to the defaults.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            lane: None,
            priority: None,
            max_attempts: None,
            retryable: None,
            backoff: None,
            lease: None,
            retention: None,
        }
    }
}

/// What a queue says about its jobs, after the job itself and its definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueSettings {
    /// The lease of a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// How long finished jobs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    #[test]
    fn a_span_is_a_number_with_a_unit() {
        for (text, millis) in [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("250ms", 250), ("0s", 0)] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.as_millis(), millis);
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
        for bad in ["", "10", "m", "-1s", "1.5h", "1e3s", "10 m", "1y", "99999999999999999999s", "9223372036854775807d"]
        {
            assert!(bad.parse::<Span>().unwrap_err().is_invalid(), "{bad}");
        }
    }

    #[test]
    fn c124_the_back_off_doubles_to_its_maximum_and_never_overflows() {
        let mut random = Seeded::new(7);
        let policy = Backoff::default();
        for (attempts, base) in
            [(1, 1_000), (2, 2_000), (9, 256_000), (10, 300_000), (63, 300_000), (u32::MAX, 300_000)]
        {
            for _ in 0..50 {
                let delay = policy.delay_ms(attempts, &mut random);
                assert!((base * 9 / 10..=base * 11 / 10).contains(&delay), "{attempts}: {delay}");
            }
        }
        let absurd = Backoff::Doubling { initial: Span(Span::MOST_MS), max: Span(Span::MOST_MS) };
        assert!(absurd.delay_ms(u32::MAX, &mut random) > 0);
        assert_eq!(Backoff::None.delay_ms(3, &mut random), 0);
    }

    #[test]
    fn c125_an_asked_delay_is_spread_and_never_early() {
        let mut random = Seeded::new(7);
        let delays: std::collections::BTreeSet<i64> =
            (0..1_000).map(|_| asked_delay_ms(Span(60_000), &mut random)).collect();
        assert!(delays.iter().all(|delay| (60_000..=66_000).contains(delay)));
        assert!(delays.len() > 500, "spread over the tenth");
    }

    #[test]
    fn a_back_off_is_a_pair_or_none() {
        let none: Backoff = serde_json::from_str("\"none\"").unwrap();
        assert_eq!(none, Backoff::None);
        let pair: Backoff = serde_json::from_str(r#"{"initial": "1s", "max": "5m"}"#).unwrap();
        assert_eq!(pair, Backoff::default());
        for bad in ["\"never\"", "{}", "3", r#"{"initial": "1s", "max": "5m", "factor": 3}"#] {
            assert!(serde_json::from_str::<Backoff>(bad).is_err(), "{bad}");
        }
    }
}
