//! The ledger in PostgreSQL, and what it is measured beside.

pub mod by_hand;
pub mod graphile;
pub mod growth;
pub mod raw;
pub mod snapshot;
pub mod starts;
