//! Public ids.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::Timestamp;
use crate::error::Error;
use crate::name::{Name, textual};
use crate::random::Random;

/// The public, opaque id of a job: `<queue>-item-<time36>-<rest>`, or any foreign id of the same alphabet.
///
/// `<time36>` is the instant of the enqueue and `<rest>` is four random digits followed by the ledger's row
/// number, all in lower-case base 36. So a ledger finds the row without an index of its own, compares the whole
/// id, and two ledgers do not make the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Arc<str>);

impl JobId {
    /// Checks a text from outside: `[A-Za-z0-9._-]{1,200}`, no dot first.
    pub fn new(text: &str) -> Result<Self, Error> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if (1..=200).contains(&text.len()) && text.bytes().all(legal) && !text.starts_with('.') {
            return Ok(Self(text.into()));
        }
        let why = "is not 1 to 200 letters, digits, dots, underscores or hyphens, the first not a dot";
        Err(Error::invalid("id", text, why))
    }

    /// Takes back an id that this type has checked or made before.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id of the job in `row` of a ledger, enqueued at `now` into the queue `queue`.
    pub fn of_row(queue: &Name, now: Timestamp, row: u64, random: &mut dyn Random) -> Self {
        let mut text = String::with_capacity(queue.as_str().len() + 32);
        text.push_str(queue.as_str());
        text.push_str("-item-");
        push_stamp(&mut text, now, random);
        push_base36(&mut text, row, 1);
        Self(text.into())
    }

    /// The four random digits that a random number makes.
    pub fn salt(word: u64) -> String {
        let mut text = String::with_capacity(4);
        push_base36(&mut text, word % 36_u64.pow(4), 4);
        text
    }

    /// The row number that an id made by [`JobId::of_row`] carries. A foreign id may carry one by chance:
    /// compare the whole id.
    pub fn row(&self) -> Option<u64> {
        let rest = self.0.rsplit('-').next()?;
        let digits = rest.get(4..).filter(|digits| !digits.is_empty())?;
        let lower_case = rest.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        lower_case.then(|| u64::from_str_radix(digits, 36).ok()).flatten()
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

textual!(JobId, JobId::new);

/// `job-<queue>-<time36>-<rest>`: the name of one run, for payloads and dedup keys.
pub fn run_id(queue: &Name, now: Timestamp, random: &mut dyn Random) -> String {
    let mut text = format!("job-{queue}-");
    push_stamp(&mut text, now, random);
    push_base36(&mut text, random.next_u64() % 36_u64.pow(6), 6);
    text
}

fn push_stamp(text: &mut String, now: Timestamp, random: &mut dyn Random) {
    push_base36(text, now.as_millis().unsigned_abs(), 1);
    text.push('-');
    text.push_str(&JobId::salt(random.next_u64()));
}

fn push_base36(text: &mut String, mut number: u64, width: usize) {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut buffer = [b'0'; 13];
    let mut start = buffer.len();
    while number > 0 || buffer.len() - start < width {
        start -= 1;
        buffer[start] = DIGITS[usize::try_from(number % 36).unwrap_or_default()];
        number /= 36;
    }
    text.extend(buffer[start..].iter().map(|&digit| char::from(digit)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    #[test]
    fn an_id_carries_its_row() {
        let queue = Name::new("queue", "process-invoices").unwrap();
        let mut random = Seeded::new(1);
        for row in [1, 35, 36, 300_000_000, 1 << 53, u64::MAX] {
            let id = JobId::of_row(&queue, Timestamp::from_millis(1_791_018_720_000), row, &mut random);
            assert!(id.as_str().starts_with("process-invoices-item-mus6aww0-"), "{id}");
            assert_eq!(id.row(), Some(row));
            assert_eq!(JobId::new(id.as_str()).unwrap(), id);
        }
    }

    #[test]
    fn c067_foreign_ids_are_strings_of_one_alphabet() {
        for good in ["1", "001", "1e8", "300000000", "-1", "9007199254740993", "a..b", &"x".repeat(200)] {
            assert!(JobId::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".a", "a b", "a/b", "ü", "a\0", &"x".repeat(201)] {
            assert!(JobId::new(bad).unwrap_err().is_invalid(), "{bad}");
        }
        for none in ["1", "abcd", "a-ABCD12", "x-item-1-ab"] {
            assert_eq!(JobId::new(none).unwrap().row(), None, "{none}");
        }
    }
}
