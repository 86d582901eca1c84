//! The trace that a job belongs to.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::name::textual;

/// Where a job belongs in a distributed trace: the value of the header `traceparent`, as the W3C's Trace Context says. Kept with the
/// job and handed to whoever runs it; the ledger makes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Traceparent(Arc<str>);

impl Traceparent {
    /// Checks a text from outside: version, trace, parent and flags in lower-case hexadecimal, neither id all zeros.
    pub fn new(text: &str) -> Result<Self, Error> {
        let widths = [2, 32, 16, 2];
        let parts: Vec<&str> = text.split('-').collect();
        let hexadecimal = |part: &&str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let is_legal = parts.len() == widths.len()
            && parts.iter().zip(widths).all(|(part, width)| part.len() == width)
            && parts.iter().all(hexadecimal)
            && parts[0] != "ff"
            && !is_zero(parts[1])
            && !is_zero(parts[2]);
        if is_legal {
            return Ok(Self(text.into()));
        }
        let why = "is not of the form 00-<32 digits>-<16 digits>-<2 digits>, in lower-case hexadecimal";
        Err(Error::invalid("traceparent", text, why))
    }

    /// Takes back a text that this type has checked before.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

textual!(Traceparent, Traceparent::new);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_that_of_the_header() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(Traceparent::new(good).unwrap().as_str(), good);
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert!(Traceparent::new(bad).unwrap_err().is_invalid(), "{bad}");
        }
    }
}
