//! SQLite's errors in the ledger's words.

use acta_core::Error;
use rusqlite::ErrorCode;

/// What an error of SQLite means for the caller; `place` is the ledger's file.
pub(super) fn translate(place: &str, fault: &rusqlite::Error) -> Error {
    of_code(place, fault.sqlite_error_code(), fault)
}

/// The same, of an error that any driver has told; without a code it is about what was read.
pub(super) fn of_code(place: &str, code: Option<ErrorCode>, fault: &dyn std::fmt::Display) -> Error {
    let place = place.to_owned();
    match code {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Unreadable { place, why: format!("{fault}; restore it from a backup, nothing was written") }
        }
        Some(ErrorCode::ConstraintViolation) => {
            Error::Unreadable { place, why: format!("the ledger would contradict itself: {fault}") }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Unavailable {
            place,
            why: format!("another process has held it for {} s ({fault})", crate::turn::PATIENCE.as_secs()),
        },
        Some(_) => Error::Unavailable { place, why: fault.to_string() },
        None => Error::Unreadable { place, why: fault.to_string() },
    }
}
