//! PostgreSQL keeps the rules.

mod common;

acta_testkit::conformance!(crate::common::postgres);

/// Whatever is done, in whatever order: PostgreSQL answers and keeps what the specification does.
#[test]
fn random_operations_leave_the_same_ledger_as_the_specification() {
    let cases = if std::env::var_os("ACTA_LONG").is_some() { 1_000 } else { 40 };
    acta_testkit::model::compare(&[common::postgres], cases, 60);
}
