//! Files keep the rules.

mod common;

acta_testkit::conformance!(crate::common::files);

/// Whatever is done, in whatever order: files, SQLite and the specification give the same answers and hold the same items.
#[test]
fn random_operations_leave_the_same_ledger_as_the_specification() {
    let cases = if std::env::var_os("ACTA_LONG").is_some() { 1_000 } else { 60 };
    acta_testkit::model::compare(&[common::files, common::sqlite], cases, 60);
}
