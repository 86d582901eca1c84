//! Names of queues and definitions, namespaces, and the free labels of lanes, keys and robots.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::state::State;

/// The name of a queue, a plain namespace, a job definition or a signal: `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`.
///
/// Two names that differ only by case can't both exist; the store refuses the second.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks `text`; `what` says in the error which name it was.
    pub fn new(what: &'static str, text: &str) -> Result<Self, Error> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let good =
            (1..=100).contains(&text.len()) && text.bytes().all(legal) && text.as_bytes()[0].is_ascii_alphanumeric();
        if good {
            return Ok(Self(text.into()));
        }
        let why = "is not 1 to 100 letters, digits, dots, underscores or hyphens, the first a letter or digit";
        Err(Error::invalid(what, text, why))
    }

    /// Takes back a text that this type has checked before.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a lane, a key or a robot: 1 to 512 bytes of UTF-8 without control characters, kept literally.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// Checks `text`; `what` says in the error which label it was.
    pub fn new(what: &'static str, text: &str) -> Result<Self, Error> {
        if text.is_empty() || text.len() > 512 {
            let why = format!("has {} bytes; 1 to 512 are allowed", text.len());
            return Err(Error::invalid(what, text, why));
        }
        if text.chars().any(char::is_control) {
            return Err(Error::invalid(what, text, "contains a control character"));
        }
        Ok(Self(text.into()))
    }

    /// Takes back a text that this type has checked before.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The label's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! textual {
    ($type:ty, $parse:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                let parse: fn(&str) -> Result<Self, Error> = $parse;
                parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use textual;

textual!(Name, |text| Name::new("name", text));
textual!(Label, |text| Label::new("label", text));

/// A vocabulary and a set of defaults over the one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `queues/<queue>`: automation work, run by run.
    JobQueue,
    /// `transactions/<queue>`: business rows, item by item.
    TransactionQueue,
    /// `<name>`: the ledger's own words, with priorities.
    Plain,
}

impl Family {
    /// What stands before the name in a namespace's path.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::JobQueue => "queues/",
            Self::TransactionQueue => "transactions/",
            Self::Plain => "",
        }
    }

    /// The lease of a claim where nothing else says one, in milliseconds.
    pub fn lease_ms(self) -> i64 {
        match self {
            Self::JobQueue => 10 * 60_000,
            Self::TransactionQueue => 5 * 60_000,
            Self::Plain => 3 * 60_000,
        }
    }

    /// How many claims a job may use up where nothing else says so.
    pub fn max_attempts(self) -> u32 {
        match self {
            Self::JobQueue => 1,
            Self::TransactionQueue => 3,
            Self::Plain => 15,
        }
    }

    /// Whether jobs may have a priority. The two queue families are first in, first out.
    pub fn has_priority(self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Whether a business failure ends a job on first sight.
    pub fn business_is_final(self) -> bool {
        matches!(self, Self::TransactionQueue | Self::Plain)
    }

    /// The word for `state` on the wire; `business` says that a failure was a business exception.
    pub fn word(self, state: State, business: bool) -> &'static str {
        match self {
            Self::Plain => state.word(),
            Self::JobQueue => match state {
                State::Blocked | State::Ready | State::Scheduled | State::Waiting => "queued",
                State::Claimed | State::Running => "claimed",
                State::Succeeded => "completed",
                State::Failed | State::Cancelled => "failed",
            },
            Self::TransactionQueue => match state {
                State::Blocked | State::Ready | State::Scheduled | State::Waiting => "pending",
                State::Claimed => "claimed",
                State::Running => "processing",
                State::Succeeded => "successful",
                State::Failed if business => "business-exception",
                State::Failed | State::Cancelled => "system-exception",
            },
        }
    }

    /// Whether [`Family::word`] stands for other states too, so that the state itself must be shown.
    pub fn word_is_shared(self, state: State, business: bool) -> bool {
        let word = self.word(state, business);
        State::ALL.into_iter().any(|other| other != state && self.word(other, false) == word)
    }
}

/// A text as one word of a shell: quoted where it has to be, so that a command in an advice does what it says.
pub fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    if !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The boundary of a claim, of lanes and of keys: `queues/<queue>`, `transactions/<queue>` or `<name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    family: Family,
    name: Name,
}

impl Namespace {
    /// A namespace of `family`.
    pub fn new(family: Family, name: Name) -> Self {
        Self { family, name }
    }

    /// `queues/<queue>`.
    pub fn job_queue(queue: &str) -> Result<Self, Error> {
        Ok(Self::new(Family::JobQueue, Name::new("queue", queue)?))
    }

    /// `transactions/<queue>`.
    pub fn transaction_queue(queue: &str) -> Result<Self, Error> {
        Ok(Self::new(Family::TransactionQueue, Name::new("queue", queue)?))
    }

    /// `<name>`.
    pub fn plain(name: &str) -> Result<Self, Error> {
        Ok(Self::new(Family::Plain, Name::new("namespace", name)?))
    }

    /// Its family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// How the command line names it, `--queue a`: names need no quotes.
    pub fn flag(&self) -> String {
        let flag = match self.family {
            Family::JobQueue => "queue",
            Family::TransactionQueue => "transactions",
            Family::Plain => "namespace",
        };
        format!("--{flag} {}", self.name)
    }

    /// Its name without the family's prefix.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.family.prefix(), self.name)
    }
}

impl FromStr for Namespace {
    type Err = Error;

    fn from_str(path: &str) -> Result<Self, Error> {
        for family in [Family::JobQueue, Family::TransactionQueue] {
            if let Some(name) = path.strip_prefix(family.prefix()) {
                return Ok(Self::new(family, Name::new("queue", name)?));
            }
        }
        Self::plain(path)
    }
}

impl Serialize for Namespace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Namespace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c068_c085_names_follow_one_rule() {
        let longest = "x".repeat(100);
        for good in ["a", "A1", "a..b", "con", "nul", "process-invoices", "0._-", longest.as_str()] {
            assert!(Name::new("queue", good).is_ok(), "{good}");
        }
        let too_long = "x".repeat(101);
        let far_too_long = "x".repeat(10_000);
        for bad in [
            "",
            " ",
            ".",
            "..",
            ".a",
            "-a",
            "_a",
            "../x",
            "..\\x",
            "/etc/x",
            "a/../b",
            "a/b",
            "a:b",
            "a b",
            "a\0",
            "o'brien",
            "x\"",
            "é",
            "名前",
            "a\n",
            &too_long,
            &far_too_long,
        ] {
            let fault = Name::new("queue", bad).unwrap_err();
            assert!(fault.is_invalid(), "{bad:?}");
            assert!(fault.to_string().len() < 500, "an error stays readable");
        }
    }

    #[test]
    fn c072_labels_are_literal_and_bounded() {
        let longest = "ü".repeat(256);
        for good in ["o'brien", "x'); DROP TABLE jobs;--", "../x", "名前", "a b", "\"", "%s", &longest] {
            assert_eq!(Label::new("lane", good).unwrap().as_str(), good);
        }
        let too_long = "x".repeat(513);
        for bad in ["", "a\0b", "a\nb", "\u{1b}[31m", "\u{7f}", "\u{85}", too_long.as_str()] {
            assert!(Label::new("lane", bad).unwrap_err().is_invalid(), "{bad:?}");
        }
    }

    #[test]
    fn a_namespace_is_its_path() {
        for (path, family) in [
            ("queues/a", Family::JobQueue),
            ("transactions/a", Family::TransactionQueue),
            ("a", Family::Plain),
            ("queues", Family::Plain),
        ] {
            let namespace: Namespace = path.parse().unwrap();
            assert_eq!(namespace.family(), family);
            assert_eq!(namespace.to_string(), path);
        }
        for bad in ["other/a", "queues/", "queues/a/b", "transactions/../a", "/a", ""] {
            assert!(bad.parse::<Namespace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_word_of_a_shell_is_only_that() {
        assert_eq!(shell_word("north"), "north");
        for text in ["$(touch pwned)", "`id`\"; ls", "o'brien", "", "a b", "-rf", "\\"] {
            let output =
                std::process::Command::new("sh").args(["-c", &format!("printf %s {}", shell_word(text))]).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), text);
        }
    }

    #[test]
    fn the_state_is_shown_where_the_word_says_less() {
        assert!(Family::JobQueue.word_is_shared(State::Running, false));
        assert!(!Family::JobQueue.word_is_shared(State::Succeeded, false));
        assert!(!Family::TransactionQueue.word_is_shared(State::Running, false));
        assert!(Family::TransactionQueue.word_is_shared(State::Failed, false));
        assert!(!Family::TransactionQueue.word_is_shared(State::Failed, true));
        assert!(State::ALL.into_iter().all(|state| !Family::Plain.word_is_shared(state, false)));
    }
}
