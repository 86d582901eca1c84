//! JSON as a text with places in it: what is not understood is kept, what is wrong is named by line and column.

use std::borrow::Cow;
use std::fmt;

use acta_core::Json;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The members of an object in their order, each as the text that it is.
#[derive(Debug, Default)]
pub(super) struct Fields<'t> {
    members: Vec<(Cow<'t, str>, Option<&'t RawValue>)>,
    /// Where the next one is looked for first: they are mostly taken in the order in which they stand.
    next: usize,
    first: Option<&'t str>,
}

/// What is wrong with a text, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) why: String,
}

impl Flaw {
    /// What is wrong with `part`, a piece of `text`.
    pub(super) fn at(text: &str, part: &str, why: impl fmt::Display) -> Self {
        let offset = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        Self::behind(text.get(..offset).unwrap_or(text), why)
    }

    /// What is wrong right behind `read`.
    pub(super) fn behind(read: &str, why: impl fmt::Display) -> Self {
        let line = read.matches('\n').count() + 1;
        let column = read.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, why: why.to_string() }
    }

    /// What a parser of `part`, a piece of `text`, has to say.
    fn of(text: &str, part: &str, fault: &serde_json::Error) -> Self {
        let start = Self::at(text, part, "");
        let said = fault.to_string();
        let why = said.split(" at line ").next().unwrap_or(&said);
        // The parser counts bytes, people count characters.
        let line = part.split('\n').nth(fault.line().saturating_sub(1)).unwrap_or_default();
        let bytes = fault.column().saturating_sub(1).min(line.len());
        let column = line.as_bytes()[..bytes].iter().filter(|byte| !matches!(byte, 0x80..=0xbf)).count();
        match fault.line() {
            0 | 1 => Self { column: start.column + column, why: why.to_owned(), ..start },
            later => Self { line: start.line + later - 1, column: column + 1, why: why.to_owned() },
        }
    }
}

/// Reads `part`, a piece of `text`.
pub(super) fn read<'t, T: Deserialize<'t>>(text: &str, part: &'t str) -> Result<T, Flaw> {
    serde_json::from_str(part).map_err(|fault| Flaw::of(text, part, &fault))
}

impl<'t> Fields<'t> {
    /// Takes a member out; `None` where it is not there.
    pub(super) fn take(&mut self, text: &str, name: &str) -> Result<Option<&'t str>, Flaw> {
        let count = self.members.len();
        let is_it = |index: &usize| self.members[*index].0 == name;
        let Some(index) = (self.next..count).chain(0..self.next).find(is_it) else { return Ok(None) };
        self.next = (index + 1) % count;
        let found = self.members[index].1.take();
        let is_other = |(member, raw): &&(Cow<'_, str>, Option<&RawValue>)| raw.is_some() && member == name;
        match self.members.iter().find(is_other) {
            Some((_, Some(second))) => Err(Flaw::at(text, second.get(), format!("\"{name}\" is there twice"))),
            _ => Ok(found.map(RawValue::get)),
        }
    }

    /// Takes a member out and reads it; `None` where it is not there or `null`.
    pub(super) fn read<T: DeserializeOwned>(&mut self, text: &str, name: &str) -> Result<Option<T>, Flaw> {
        match self.take(text, name)? {
            None | Some("null") => Ok(None),
            Some(part) => {
                read(text, part).map(Some).map_err(|flaw| Flaw { why: format!("{name}: {}", flaw.why), ..flaw })
            }
        }
    }

    /// What is wrong with the object: named where its first member is.
    pub(super) fn flaw(&self, text: &str, why: impl fmt::Display) -> Flaw {
        Flaw::at(text, self.first.unwrap_or(text), why)
    }

    /// What is left.
    pub(super) fn into_unknown(self) -> Vec<(String, Json)> {
        let left =
            |(name, raw): (Cow<'_, str>, Option<&RawValue>)| Some((name.into_owned(), Json::trusted(raw?.get())));
        self.members.into_iter().filter_map(left).collect()
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(_, Option<&RawValue>)> = Vec::with_capacity(16);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, Some(map.next_value()?)));
                }
                let first = members.first().and_then(|(_, raw)| *raw).map(RawValue::get);
                Ok(Fields { members, next: 0, first })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A member's name, borrowed where it can be.
#[derive(Deserialize)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

/// Members, to be written into an object among others.
pub(super) struct Members<'a>(pub(super) &'a [(String, Json)]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_is_named_by_line_and_column() {
        let text = "{\n  \"a\": {\"b\": tru},\n  \"c\": 1\n}";
        let flaw = read::<Fields<'_>>(text, text).unwrap_err();
        assert_eq!((flaw.line, flaw.column), (2, 17), "{}", flaw.why);
        let mut fields: Fields<'_> = read("", "{\"a\": 1, \"b\": \"x\",\n \"a\": 2}").unwrap();
        assert_eq!(fields.members.len(), 3);
        assert!(fields.take("", "a").unwrap_err().why.contains("twice"));
    }

    #[test]
    fn a_flaw_in_a_part_is_named_where_it_is_in_the_whole() {
        let text = "{\"n\": 1,\n   \"s\": [1,\n 2x]}";
        let part = &text[text.find('[').unwrap()..text.len() - 1];
        let flaw = read::<Vec<i64>>(text, part).unwrap_err();
        assert_eq!((flaw.line, flaw.column), (3, 3));
        let text = "{\"ü\": \"x\"}";
        let part = &text[text.rfind("\"x").unwrap()..text.len() - 1];
        assert_eq!(read::<i64>(text, part).unwrap_err().line, 1);
        assert_eq!(Flaw::at(text, part, "").column, 7);
    }
}
