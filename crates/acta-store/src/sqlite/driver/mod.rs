//! The drivers whose connections a caller's transaction may be on.

#[cfg(feature = "rusqlite")]
mod rusqlite;
#[cfg(feature = "sqlx-sqlite")]
mod sqlx;

use ::rusqlite::ErrorCode;
use acta_core::Error;

use super::fault;

/// An error on a caller's connection. Who waits there, and for how long, is the caller's to say.
fn of_caller(place: &str, code: Option<ErrorCode>, told: &dyn std::fmt::Display) -> Error {
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Unavailable {
            place: place.to_owned(),
            why: format!(
                "somebody else is writing ({told}); begin the transaction with BEGIN IMMEDIATE, on a connection with a busy \
                 timeout, and it waits for its turn"
            ),
        },
        code => fault::of_code(place, code, told),
    }
}
