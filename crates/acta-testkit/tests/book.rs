//! The executable specification keeps its own rules.

acta_testkit::conformance!(acta_testkit::desk::book);
