//! The ledger in PostgreSQL, and what it is measured beside.

pub mod ledger;
pub mod raw;
