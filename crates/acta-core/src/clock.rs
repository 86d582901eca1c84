//! Instants, and the clock that hands them out.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;

/// An instant in milliseconds since 1970-01-01T00:00:00Z, between that day and the end of the year 9999.
///
/// On the wire it is RFC 3339 in UTC with three decimals: `2026-10-03T09:12:00.000Z`.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00.000Z.
    pub const MIN: Self = Self(0);
    /// 9999-12-30T00:00:00.000Z, the last day that every library can write.
    pub const MAX: Self = Self(253_402_128_000_000);

    /// The instant `millis` after the epoch; values outside the range are cut to its ends.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant `millis` later (earlier where negative), cut to the range: a delay can't overflow.
    pub fn plus_ms(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this instant; negative where `earlier` is the later one.
    pub fn since_ms(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    /// Reads RFC 3339. A text without a zone is refused: it would mean another instant on another machine.
    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| {
            Error::invalid("instant", text, "is not RFC 3339 with a zone, like 2026-10-03T09:12:00.000Z")
        })?;
        let millis = parsed.as_millisecond();
        if !(Self::MIN.0..=Self::MAX.0).contains(&millis) {
            return Err(Error::invalid("instant", text, "is outside 1970 to 9999"));
        }
        Ok(Self(millis))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What tells a store the time. A store asks it once per operation.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The instant now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is moved; for tests, simulations and the lab.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_millis()))
    }

    /// Moves the clock by `millis`.
    pub fn advance_ms(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_with_three_decimals_and_read_back() {
        let instant = Timestamp::from_millis(1_791_018_720_000);
        assert_eq!(instant.to_string(), "2026-10-03T09:12:00.000Z");
        assert_eq!("2026-10-03T09:12:00.000Z".parse::<Timestamp>().unwrap(), instant);
        assert_eq!("2026-10-03T14:57:00+05:45".parse::<Timestamp>().unwrap(), instant);
        assert_eq!(Timestamp::MAX.to_string().parse::<Timestamp>().unwrap(), Timestamp::MAX);
    }

    #[test]
    fn c098_an_instant_without_a_zone_is_refused() {
        for text in ["2026-03-01T10:00:00", "2026-03-01", "1772359200", "", "10:00"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn adding_never_leaves_the_range() {
        assert_eq!(Timestamp::MAX.plus_ms(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.plus_ms(i64::MIN), Timestamp::MIN);
    }
}
