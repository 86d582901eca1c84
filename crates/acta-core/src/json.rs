//! JSON that is carried, not understood.

use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;

/// The text of one JSON value, kept byte for byte: no rounding, no reordering, inner white space as it came.
///
/// White space around the value is not part of it and is cut off.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

impl Json {
    /// The longest text that is accepted, in bytes.
    pub const MOST_BYTES: usize = 1024 * 1024;
    /// How deep arrays and objects may be nested.
    pub const MOST_DEPTH: usize = 128;

    /// Checks that `text` is one JSON value within the bounds, and keeps it.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref().trim_matches([' ', '\t', '\n', '\r']);
        Self::check_bounds(text)?;
        // `IgnoredAny` walks the syntax without turning numbers or strings into values, so 1e400, 2^63 and
        // "\u0000" are as good as any other.
        serde_json::from_str::<IgnoredAny>(text)
            .map_err(|fault| Error::invalid("JSON", text, format!("does not parse: {fault}")))?;
        Ok(Self(text.into()))
    }

    /// Takes back a text that this type has checked before, from a place that only such texts go into.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The JSON value `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn check_bounds(text: &str) -> Result<(), Error> {
        if text.len() > Self::MOST_BYTES {
            let why = format!("has {} bytes, more than the {} allowed", text.len(), Self::MOST_BYTES);
            return Err(Error::invalid("JSON", text, why));
        }
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'[' | b'{' if !in_string => {
                    depth += 1;
                    if depth > Self::MOST_DEPTH {
                        let why = format!("is nested deeper than {}", Self::MOST_DEPTH);
                        return Err(Error::invalid("JSON", text, why));
                    }
                }
                b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            // Damaged where it was kept: shown as a string, so that one such text does not hide all others.
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::new(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c065_every_byte_of_a_value_is_kept() {
        for text in [
            "9223372036854775808",
            "1e400",
            r#"{"a":1,"a":2}"#,
            r#""\u0000""#,
            r#""\ud800""#,
            "{ \"z\" :\t1 ,\n \"a\":[ ] }",
            "123456789012345678901234567890",
            "-0.0",
            "null",
        ] {
            let json = Json::new(text).unwrap();
            assert_eq!(json.as_str(), text);
            assert_eq!(serde_json::to_string(&json).unwrap(), text);
            let inside = format!(r#"{{"payload": {text}}}"#);
            let back: std::collections::HashMap<String, Json> = serde_json::from_str(&inside).unwrap();
            assert_eq!(back["payload"].as_str(), text);
        }
    }

    #[test]
    fn white_space_around_a_value_is_not_part_of_it() {
        assert_eq!(Json::new(" \n[1, 2]\t").unwrap().as_str(), "[1, 2]");
    }

    #[test]
    fn what_is_not_one_json_value_is_refused() {
        for text in ["", " ", "{", "{a:1}", "1 2", "nul", "\"\u{1}\"", "'x'", "[1,]", "\u{a0}1"] {
            assert!(Json::new(text).unwrap_err().is_invalid(), "{text:?}");
        }
    }

    #[test]
    fn size_and_nesting_are_bounded() {
        let string = |len: usize| format!("\"{}\"", "x".repeat(len - 2));
        assert!(Json::new(string(Json::MOST_BYTES)).is_ok());
        assert!(Json::new(string(Json::MOST_BYTES + 1)).is_err());
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::new(nested(Json::MOST_DEPTH)).is_ok());
        assert!(Json::new(nested(Json::MOST_DEPTH + 1)).is_err());
        assert!(Json::new(format!("\"{}\"", "[".repeat(500))).is_ok());
    }
}
