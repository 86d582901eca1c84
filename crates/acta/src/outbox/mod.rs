//! From the application's transaction into the ledger.
//!
//! An application inserts rows into a table of its own database, in the transaction that saves what they are about. A [`Relay`] carries
//! them into the ledger once that has committed, in order where they name a lane, each once, and deletes them.

mod line;
mod quarantine;
mod relay;
mod round;
#[cfg(any(
    feature = "mysql-async",
    feature = "rusqlite",
    feature = "sqlx-mysql",
    feature = "sqlx-sqlite",
    feature = "sqlx-postgres",
    feature = "tokio-postgres"
))]
mod stage;

pub use acta_core::relay::{Discarded, Held, Look, Quarantined, Reason, Row, Source, Standing, Which, Why};
pub use acta_store::outbox::{Dialect, TableName, open};
pub use quarantine::{Released, discard, requeue};
pub use relay::Relay;
#[cfg(any(
    feature = "mysql-async",
    feature = "rusqlite",
    feature = "sqlx-mysql",
    feature = "sqlx-sqlite",
    feature = "sqlx-postgres",
    feature = "tokio-postgres"
))]
pub use stage::Outbox;
