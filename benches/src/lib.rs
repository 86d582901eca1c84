//! How fast the ledger is, beside the same durable transitions by hand: what `cargo bench -p benches` runs.

pub mod flat;
pub mod ledger;
pub mod outbox;
pub mod postgres;
pub mod raw;
pub mod table;
pub mod work;
