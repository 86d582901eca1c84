//! The examples of docs/OUTBOX.md for other languages, run as they stand there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acta_testkit::postgres::{Database, Server, sql};

use crate::checker::arrived;
use crate::common::Desk;

/// The text of the document's block whose first line is this.
fn block(fence: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OUTBOX.md");
    let page = std::fs::read_to_string(path).unwrap();
    let lines = page.lines().skip_while(|line| *line != format!("```{fence}")).skip(1);
    let block: Vec<&str> = lines.take_while(|line| *line != "```").collect();
    assert!(!block.is_empty(), "the page has no {fence}");
    block.join("\n")
}

/// What ./test prepares for a language.
fn prepared(variable: &str, what: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{what} is not prepared ({variable} is not set): run ./test"))
}

/// Runs a program beside an outbox; what it staged and committed arrives.
fn check(command: &mut Command, order: usize) {
    let desk = Desk::on("sqlite");
    let shop = Database::new(Server::shared_url(), None);
    let ddl = desk.run(&["outbox", "ddl", "--for", "postgres"]).out;
    sql(&shop.url(), &format!("CREATE TABLE orders (id bigint PRIMARY KEY, customer text); {ddl}")).unwrap();
    let output = command.env("DATABASE_URL", shop.url()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sql(&shop.url(), "SELECT id FROM orders").unwrap(), [order.to_string()]);
    let relay = desk.run(&["outbox", "relay", "--source", &shop.url(), "--until-idle"]);
    assert_eq!(relay.code, Some(0), "{relay:?}");
    assert_eq!(arrived(&desk), [(order, "north".to_owned())]);
}

#[test]
fn the_example_in_python_stages_an_order() {
    let script = block("python");
    check(Command::new(prepared("ACTA_TEST_PYTHON", "Python with psycopg")).args(["-c", &script]), 4001);
}

#[test]
fn the_example_in_node_js_stages_an_order() {
    // Modules are looked for beside the program and above.
    let tools = PathBuf::from(prepared("ACTA_TEST_NODE", "Node.js with pg"));
    let folder = tempfile::tempdir_in(tools).unwrap();
    let program = folder.path().join("example.mjs");
    std::fs::write(&program, block("js")).unwrap();
    check(Command::new("node").arg(&program), 5001);
}
