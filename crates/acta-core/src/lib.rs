//! The rules of the Acta ledger.
//!
//! Everything that decides what may happen to a job stands in this crate, and nothing in it does I/O or reads a
//! clock: instants and randomness are handed in. [`Rules`] holds the verbs, written once over [`Rows`], the few
//! indexed reads and writes that a substrate offers. [`Book`] is the substrate that lives in memory; the SQLite
//! provider is another one. [`Store`] is the seam that applications see.

pub mod audit;
pub mod book;
pub mod changes;
pub mod clock;
pub mod error;
pub mod explain;
pub mod history;
pub mod id;
pub mod item;
pub mod job;
pub mod json;
pub mod name;
pub mod policy;
pub mod random;
pub mod relay;
pub mod rows;
pub mod rules;
pub mod shelf;
pub mod state;
pub mod store;
pub mod traceparent;
pub mod transition;
pub mod vitals;
pub mod worker;

pub use book::Book;
pub use changes::Changes;
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use error::{Error, Result};
pub use id::JobId;
pub use item::Item;
pub use job::{Detail, Identity, Job, Standing};
pub use json::Json;
pub use name::{Family, Label, Name, Namespace};
pub use policy::{Backoff, Definition, QueueSettings, Span};
pub use random::{Random, Seeded};
pub use rows::Rows;
pub use rules::Rules;
pub use state::State;
pub use store::Store;
pub use traceparent::Traceparent;
