//! The substrates of the Acta ledger.
//!
//! Every provider implements [`acta_core::Store`] and lets [`acta_core::Rules`] decide; what differs is where the
//! rows are kept and how a change becomes durable.

#[cfg(any(feature = "sqlite", feature = "file", feature = "postgres"))]
mod address;
#[cfg(any(feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
mod caller;
pub mod failpoint;
#[cfg(feature = "file")]
pub mod file;
pub mod filesystem;
mod migration;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub mod outbox;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod random;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "sqlite", feature = "file"))]
mod turn;

#[cfg(any(feature = "sqlite", feature = "file", feature = "postgres"))]
pub use address::{Address, Opened};
#[cfg(any(feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
pub use caller::Caller;
#[cfg(feature = "file")]
pub use file::FileStore;
pub use migration::{Migration, Pending};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
