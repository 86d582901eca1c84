//! Background jobs for Rust applications, on a durable ledger.
//!
//! A job is a type that implements [`Job`]. [`Ledger::enqueue`] puts one into a ledger; a [`Worker`] takes jobs out,
//! runs a handler for each and settles them. Workers are peers: run as many as you like, in as many processes, and
//! nobody coordinates them. Execution is *at least once*: a job whose worker died runs again.
//!
#![doc = include_str!("../../../docs/LIBRARY.md")]

#[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
mod caller;
mod carry;
mod context;
mod drive;
mod error;
mod handler;
mod job;
mod ledger;
mod maintenance;
mod observed;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod outbox;
mod prepare;
mod presence;
mod shutdown;
pub mod testing;
mod traced;
mod worker;

pub use acta_core::job::FailureKind;
pub use acta_core::store::{Enqueued, Failure, Found, Outcome};
pub use acta_core::worker::{Note, Ticket, Word as StopReason};
pub use acta_core::{
    Backoff, Clock, Definition, Error, JobId, Json, Result, Span, State, Store, SystemClock, Timestamp, Traceparent,
};
#[cfg(any(feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
pub use acta_store::Caller;
#[cfg(any(feature = "rusqlite", feature = "sqlx-sqlite", feature = "sqlx-postgres", feature = "tokio-postgres"))]
pub use caller::Wake;
pub use context::Context;
pub use error::JobError;
pub use job::Job;
pub use ledger::Ledger;
pub use observed::Observed;
pub use prepare::Prepared;
pub use shutdown::shutdown_signal;
pub use worker::Worker;
