//! Job definitions: files that say what a robot runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acta_core::{Backoff, Definition, Json, Name, Span};
use anyhow::Result;
use serde::{Deserialize, Deserializer, de};

use crate::exit::{Exit, Fault};

/// A job definition as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Jobdef {
    pub(crate) name: Name,
    pub(crate) command: Argv,
    #[serde(default)]
    queue: Option<Name>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    pub(crate) env: BTreeMap<Variable, Text>,
    #[serde(default = "Json::null")]
    pub(crate) input: Json,
    #[serde(default = "one")]
    max_attempts: Positive,
    #[serde(default = "yes")]
    retryable: bool,
    #[serde(default)]
    backoff: Option<Backoff>,
    #[serde(default)]
    lease: Option<NonZeroSpan>,
    #[serde(default)]
    pub(crate) timeout: Option<NonZeroSpan>,
    /// When it is to run by itself; read by the scheduler.
    #[serde(default, rename = "schedule")]
    _schedule: Option<Text>,
    #[serde(default, rename = "timezone")]
    _timezone: Option<Text>,
    #[serde(skip)]
    folder: PathBuf,
}

fn yes() -> bool {
    true
}

fn one() -> Positive {
    Positive(1)
}

/// The lease of a run where its definition says none.
const LEASE_MS: i64 = 600_000;

impl Jobdef {
    /// Reads a definition; what is wrong with it is told with path, line and column, and with what was left
    /// undone because of it.
    pub(crate) fn read(path: &Path, undone: &str) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|fault| {
            Fault::new(Exit::Usage, format!("{shown}: {fault}")).hint("name a job definition, a JSON file")
        })?;
        let mut jobdef: Self = serde_json::from_str(&text).map_err(|fault| {
            let said = fault.to_string();
            let why = said.split(" at line ").next().unwrap_or(&said);
            let message = format!("{shown}: line {}, column {}: {why}", fault.line(), fault.column());
            Fault::new(Exit::Usage, message).hint(format!("{undone}; mend the file and run it again"))
        })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        jobdef.folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Ok(jobdef)
    }

    /// The queue that its jobs go through.
    pub(crate) fn queue(&self) -> &Name {
        self.queue.as_ref().unwrap_or(&self.name)
    }

    /// Where its command runs.
    pub(crate) fn cwd(&self) -> PathBuf {
        match &self.cwd {
            Some(cwd) => self.folder.join(cwd),
            None => self.folder.clone(),
        }
    }

    /// The lease of a claim of its jobs.
    pub(crate) fn lease(&self) -> Span {
        self.lease.map_or(Span::from_millis(LEASE_MS), |lease| lease.0)
    }

    /// What the ledger is told about its jobs.
    pub(crate) fn definition(&self) -> Definition {
        Definition {
            max_attempts: Some(self.max_attempts.0),
            retryable: Some(self.retryable),
            backoff: self.backoff,
            lease: self.lease.map(|lease| lease.0),
            ..Definition::new(self.name.clone())
        }
    }
}

/// A command and its arguments, given to the system as they are; no shell reads them.
#[derive(Clone, Debug)]
pub(crate) struct Argv {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut words = Vec::<Text>::deserialize(deserializer)?.into_iter().map(|word| word.0);
        match words.next() {
            Some(program) if !program.is_empty() => Ok(Self { program, arguments: words.collect() }),
            _ => Err(de::Error::custom(
                "command is empty: it is the program and its arguments, like [\"python3\", \"job.py\"]",
            )),
        }
    }
}

/// A text that the system can be handed: without NUL.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.contains('\0') {
            return Err(de::Error::custom("a NUL character can't be handed to a process"));
        }
        Ok(Self(text))
    }
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variable(pub(crate) String);

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(name) = Text::deserialize(deserializer)?;
        if name.is_empty() || name.contains('=') {
            return Err(de::Error::custom(format!("{name:?} is no name of an environment variable")));
        }
        if name.starts_with("ACTA_") {
            return Err(de::Error::custom(format!("{name}: the names that begin with ACTA_ are the robot's own")));
        }
        Ok(Self(name))
    }
}

#[derive(Clone, Copy, Debug)]
struct Positive(u32);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            0 => Err(de::Error::custom("maxAttempts 0 leaves no attempt at all")),
            number => Ok(Self(number)),
        }
    }
}

/// A length of time that is some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NonZeroSpan(pub(crate) Span);

impl<'de> Deserialize<'de> for NonZeroSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let span = Span::deserialize(deserializer)?;
        if span.as_millis() == 0 {
            return Err(de::Error::custom("a duration of 0 is no time at all"));
        }
        Ok(Self(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Jobdef> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Jobdef::read(file.path(), "nothing was done")
    }

    #[test]
    fn what_is_left_open_has_the_defaults() {
        let jobdef = read(r#"{"name": "invoices", "command": ["true"]}"#).unwrap();
        assert_eq!(jobdef.queue().as_str(), "invoices");
        assert_eq!(jobdef.lease().to_string(), "10m");
        assert_eq!(jobdef.input, Json::null());
        assert!(jobdef.cwd().is_absolute());
        let definition = jobdef.definition();
        assert_eq!((definition.max_attempts, definition.retryable), (Some(1), Some(true)));
    }

    #[test]
    fn a_fault_is_told_with_line_and_column() {
        for (text, place) in [
            ("{\"name\": \"a\",\n \"command\": []}", "line 2, column 15: command is empty"),
            ("{\"name\": \"a\",\n \"command\": [\"x\"],\n \"colour\": 1}", "line 3, column 9: unknown field `colour`"),
            ("{\"name\": \"../a\", \"command\": [\"x\"]}", "line 1, column 15: name \"../a\""),
            ("{\"name\": \"a\"}", "line 1, column 13: missing field `command`"),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"lease\": \"10 minutes\"}", "line 1, column 54"),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"lease\": \"0s\"}", "is no time at all"),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"maxAttempts\": 0}", "leaves no attempt"),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"env\": {\"ACTA_X\": \"1\"}}", "the robot's own"),
            ("{\"name\": \"a\", \"command\": [\"x\\u0000\"]}", "NUL"),
            ("{\"name\": ", "line 1, column 9"),
        ] {
            let fault = read(text).unwrap_err().to_string();
            assert!(fault.contains(place), "{fault} does not contain {place}");
        }
    }
}
