//! PostgreSQL's errors in the ledger's words.

use acta_core::policy::{check_budget, check_lease, check_priority};
use acta_core::store::Openness;
use acta_core::{Error, Family, Span};
use serde::Deserialize;
use tokio_postgres::error::{DbError, SqlState};

/// What a function of the ledger says where it refuses a call; see `_refuse`.
#[derive(Debug, Deserialize)]
struct Refused {
    code: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    given: String,
    #[serde(default)]
    existing: String,
    index: Option<usize>,
}

/// What the states of all refusals begin with; the last digit is the kind, for callers that read no detail.
const REFUSED: &str = "ACTA";

/// An error as the database told it, to whatever driver.
pub(super) struct Said<'e> {
    /// The SQLSTATE.
    pub(super) code: &'e str,
    pub(super) message: &'e str,
    pub(super) detail: Option<&'e str>,
}

impl<'e> From<&'e DbError> for Said<'e> {
    fn from(said: &'e DbError) -> Self {
        Self { code: said.code().code(), message: said.message(), detail: said.detail() }
    }
}

/// What an error of PostgreSQL means for the caller; `place` is the ledger, `family` that of the namespace in hand.
pub(super) fn translate(place: &str, family: Option<Family>, fault: &tokio_postgres::Error) -> Error {
    match fault.as_db_error() {
        Some(said) => of_database(place, family, &said.into()),
        // A row that can't be read as what it should be.
        None if !fault.is_closed() && fault.to_string().contains("deserializing") => {
            Error::Unreadable { place: place.into(), why: with_source(fault) }
        }
        None => unavailable(place, with_source(fault)),
    }
}

pub(super) fn unavailable(place: &str, why: String) -> Error {
    Error::Unavailable { place: place.into(), why }
}

fn with_source(fault: &dyn std::error::Error) -> String {
    match fault.source() {
        Some(source) => format!("{fault}: {source}"),
        None => fault.to_string(),
    }
}

pub(super) fn of_database(place: &str, family: Option<Family>, said: &Said<'_>) -> Error {
    let (place, message) = (place.to_owned(), said.message);
    if said.code.starts_with(REFUSED) {
        let told = said.detail.and_then(|detail| serde_json::from_str(detail).ok());
        return match told {
            Some(told) => refused(place, family, &told, message),
            None => Error::Unreadable { place, why: message.into() },
        };
    }
    let class = said.code.get(..2).unwrap_or_default();
    match SqlState::from_code(said.code) {
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_FUNCTION | SqlState::INVALID_SCHEMA_NAME => {
            let why = format!("{message}; is there a ledger of this release? `orchestrator migrate` makes one");
            Error::Unreadable { place, why }
        }
        SqlState::INSUFFICIENT_PRIVILEGE => Error::Unavailable { place, why: message.into() },
        // Constraints repeat the rules: one that is violated means that the ledger would contradict itself.
        _ if class == "23" => {
            Error::Unreadable { place, why: format!("the ledger would contradict itself: {message}") }
        }
        SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => {
            Error::invalid("text", message, "holds a character that PostgreSQL can't keep")
        }
        _ => Error::Unavailable { place, why: format!("{message} ({})", said.code) },
    }
}

fn refused(place: String, family: Option<Family>, told: &Refused, message: &str) -> Error {
    let fault = match told.code.as_str() {
        "case" => Error::CaseDiffers {
            what: if told.what == "queue" { "queue" } else { "name" },
            given: told.given.clone(),
            existing: told.existing.clone(),
        },
        "missing" => Error::not_found(if told.what == "queue" { "queue" } else { "job" }, &told.given),
        "closed" => {
            let openness: Option<Openness> = serde_json::from_str(&told.given).ok();
            return match openness.map(|openness| openness.check(&place)) {
                Some(Err(closed)) => closed,
                _ => Error::Unavailable { place, why: message.into() },
            };
        }
        "invalid" => said_by_the_rules(family, told).unwrap_or_else(|| Error::invalid("job", &told.given, message)),
        _ => return Error::Unavailable { place, why: message.into() },
    };
    match told.index {
        Some(index) => fault.at(index),
        None => fault,
    }
}

/// The words stand in the rules: asked the same, they refuse the same.
fn said_by_the_rules(family: Option<Family>, told: &Refused) -> Option<Error> {
    let number: i64 = told.given.parse().ok()?;
    match told.what.as_str() {
        "priority" => check_priority(family?, u8::try_from(number).unwrap_or(u8::MAX)).err(),
        "maxAttempts" => check_budget(u32::try_from(number).ok()).err(),
        "lease" => check_lease(Some(Span::from_millis(number))).err(),
        _ => None,
    }
}
