//! The steps of a ledger's schema, where it has one.

/// A step of a schema. They are append only: one that was released is never changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1.
    pub version: i64,
    /// Its name.
    pub name: &'static str,
    pub(crate) sql: &'static str,
}

/// What a ledger lacks of this release's schema.
#[derive(Debug, Default)]
pub struct Pending {
    /// The steps; none where it is current.
    pub migrations: Vec<&'static Migration>,
    /// The same as one script, to be run in one transaction.
    pub script: String,
}

/// Those behind `version`; all where there is none yet.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn behind(all: &'static [Migration], version: Option<i64>) -> Vec<&'static Migration> {
    all.iter().filter(|migration| migration.version > version.unwrap_or(0)).collect()
}
