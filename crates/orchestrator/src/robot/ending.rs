//! What a process's end means for its job.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use acta_core::Json;
use acta_core::job::FailureKind;
use acta_core::store::{Failure, Outcome};
use serde::Deserialize;

/// The exit code by which a job says "business exception": the input can't be accepted.
const BUSINESS: i32 = 65;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The process ended by itself.
    Exited(ExitStatus),
    /// It could not be started.
    NotStarted(String),
    /// It took too long and was ended.
    TimedOut(String),
}

/// What a job may write into its result file when it fails.
#[derive(Debug, Default, Deserialize)]
struct Told {
    message: Option<String>,
    code: Option<String>,
    details: Option<Json>,
}

/// The outcome of an attempt; `last_words` is the last line that the process wrote to its standard error.
pub(crate) fn outcome_of(ending: &Ending, result_file: &Path, last_words: Option<&str>) -> Outcome {
    let status = match ending {
        Ending::NotStarted(why) => return failed(FailureKind::System, "not-started", why.clone()),
        Ending::TimedOut(limit) => {
            return failed(FailureKind::System, "timeout", format!("it was ended after its timeout of {limit}"));
        }
        Ending::Exited(status) => *status,
    };
    let result = read_result(result_file);
    if status.success() {
        return match result {
            Ok(result) => Outcome::Succeeded(result),
            Err(why) => failed(FailureKind::System, "bad-result", why),
        };
    }
    // A failure stays the failure that it is, whatever it left in its result file.
    let result = result.unwrap_or_default();
    let told: Told = result.and_then(|result| serde_json::from_str(result.as_str()).ok()).unwrap_or_default();
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended in an unknown way".into(),
    };
    let kind = if status.code() == Some(BUSINESS) { FailureKind::Business } else { FailureKind::System };
    let message = told.message.or_else(|| last_words.map(ToOwned::to_owned)).unwrap_or_else(|| how.clone());
    Outcome::Failed(Failure {
        code: Some(told.code.unwrap_or_else(|| how.replace(' ', "-"))),
        details: told.details,
        ..Failure::new(kind, message)
    })
}

fn failed(kind: FailureKind, code: &str, message: String) -> Outcome {
    Outcome::Failed(Failure { code: Some(code.into()), ..Failure::new(kind, message) })
}

fn read_result(path: &Path) -> Result<Option<Json>, String> {
    let most = Json::MOST_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|fault| format!("its result file can't be read: {fault}"))?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let text = String::from_utf8(bytes).map_err(|_| "its result file is not UTF-8".to_owned())?;
    Json::new(text).map(Some).map_err(|fault| format!("its result file: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(code: i32, result: &str, last_words: Option<&str>) -> Outcome {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), result).unwrap();
        outcome_of(&Ending::Exited(ExitStatus::from_raw(code << 8)), file.path(), last_words)
    }

    #[test]
    fn c134_every_end_has_its_kind_and_its_own_message() {
        assert_eq!(after(0, "", None), Outcome::Succeeded(None));
        assert_eq!(
            after(0, "{\"total\": 1.10}", None),
            Outcome::Succeeded(Some(Json::new("{\"total\": 1.10}").unwrap()))
        );
        let failure = |outcome| match outcome {
            Outcome::Failed(failure) => failure,
            other => panic!("{other:?}"),
        };
        let business = failure(after(65, "", Some("row 3: no amount")));
        assert_eq!((business.kind, business.message.as_str()), (FailureKind::Business, "row 3: no amount"));
        let system = failure(after(1, "", None));
        assert_eq!((system.kind, system.message.as_str()), (FailureKind::System, "exit code 1"));
        let told = failure(after(65, r#"{"message": "no", "code": "E1", "details": [1]}"#, Some("other")));
        assert_eq!((told.message.as_str(), told.code.as_deref()), ("no", Some("E1")));
        let rejected = failure(after(65, "{", Some("no such customer")));
        assert_eq!((rejected.kind, rejected.message.as_str()), (FailureKind::Business, "no such customer"));
        let malformed = failure(after(0, "{", None));
        assert_eq!((malformed.kind, malformed.code.as_deref()), (FailureKind::System, Some("bad-result")));
        let file = tempfile::NamedTempFile::new().unwrap();
        let killed = failure(outcome_of(&Ending::Exited(ExitStatus::from_raw(9)), file.path(), None));
        assert_eq!((killed.kind, killed.message.as_str()), (FailureKind::System, "killed by signal 9"));
    }
}
