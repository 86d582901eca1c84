//! SQLite keeps the rules.

mod common;

acta_testkit::conformance!(crate::common::sqlite);

/// Whatever is done, in whatever order: SQLite answers and keeps what the specification does.
#[test]
fn random_operations_leave_the_same_ledger_as_the_specification() {
    let cases = if std::env::var_os("ACTA_LONG").is_some() { 3_000 } else { 150 };
    acta_testkit::model::compare(&[common::sqlite], cases, 60);
}
