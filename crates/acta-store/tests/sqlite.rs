//! SQLite keeps the rules.

mod common;

acta_testkit::conformance!(crate::common::sqlite);
