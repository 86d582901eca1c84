//! What every substrate of the ledger is tested with.
//!
//! - [mod@conformance]: what a ledger must do, a function a rule; [`conformance!`] runs all of it on a provider.
//! - [`model`]: random operations through the specification and a provider, compared after every step.
//! - [`invariants`]: what must be true of any ledger at any time.

#![allow(clippy::missing_panics_doc, reason = "a broken rule panics: that is how a test says no")]

pub mod conformance;
pub mod desk;
pub mod invariants;
pub mod mariadb;
pub mod model;
pub mod postgres;
pub mod proxy;

pub use desk::{Desk, block_on};
