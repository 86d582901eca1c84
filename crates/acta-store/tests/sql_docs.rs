//! The examples of docs/POSTGRES.md, run as they stand there.

mod common;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acta_testkit::postgres::{self, Database};
use common::session::ledger;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/POSTGRES.md");
    fs::read_to_string(path).unwrap()
}

/// The text of the document's blocks whose first line is this.
fn blocks(fence: &str) -> Vec<String> {
    let page = page();
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{fence}") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    assert!(!blocks.is_empty(), "the page has no {fence}");
    blocks
}

/// A ledger beside the application's table.
fn shop() -> Database {
    let database = ledger();
    postgres::sql(&database.url(), &blocks("sql table")[0]).unwrap();
    database
}

/// What a program that ends well prints.
fn output(command: &mut Command, database: &Database) -> String {
    let output = command.env("DATABASE_URL", database.url()).stdin(Stdio::null()).output().unwrap();
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{said}");
    out.into_owned()
}

/// What ./test prepares for a language.
fn prepared(variable: &str, what: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{what} is not prepared ({variable} is not set): run ./test"))
}

/// Orders that were shipped, and jobs that are done: as many each.
fn shipped(database: &Database) -> Vec<String> {
    let all =
        "SELECT count(*) FROM acta.standing WHERE state = 6 UNION ALL SELECT id FROM orders WHERE shipped IS NOT NULL";
    postgres::sql(&database.url(), all).unwrap()
}

#[test]
fn the_examples_in_sql_do_what_the_page_says() {
    let database = shop();
    let mut said = Vec::new();
    for block in blocks("sql psql") {
        let mut psql = Command::new(postgres::program("psql"));
        psql.args([
            &database.url(),
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "-v",
            "VERBOSITY=sqlstate",
        ]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = psql.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), block.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        said.push((String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap()));
    }
    assert!(said[0].0.contains("|blocked\n") && said[0].1.is_empty(), "{said:?}");
    assert!(said[1].0.contains("|f|f\nsucceeded\nsucceeded|1|{\"parcel\": \"P-1\"}\n"), "{said:?}");
    assert!(said[1].1.is_empty(), "{said:?}");
    assert!(said[2].0.ends_with("\nt\nsucceeded\n"), "{said:?}");
    assert_eq!(said[2].1, "ERROR:  ACTA3\n");
    assert_eq!(shipped(&database), ["2", "1001"], "the zombie's order is not shipped by it");
}

#[test]
fn the_roles_on_the_page_are_made() {
    let database = shop();
    let script = &blocks("sql roles")[0];
    assert!(script.contains("CREATE ROLE shop "));
    // Roles belong to the whole server: this one has a name of its own.
    let role = format!("shop_{}", std::process::id());
    let script = script.replace("ROLE shop", &format!("ROLE {role}")).replace("'shop'", &format!("'{role}'"));
    let used = format!(
        "{script}; SET ROLE {role}; SELECT id FROM acta.enqueue('orders', '1'); SELECT count(*) FROM acta.jobs"
    );
    assert_eq!(postgres::sql(&database.url(), &used).unwrap().last().map(String::as_str), Some("1"));
    postgres::sql(&database.url(), &format!("DROP OWNED BY {role}; DROP ROLE {role}")).unwrap();
}

#[test]
fn the_example_in_python_does_what_the_page_says() {
    let database = shop();
    let script = &blocks("python")[0];
    let said =
        output(Command::new(prepared("ACTA_TEST_PYTHON", "Python with psycopg")).args(["-c", script]), &database);
    let expected = "order 2001: shipped\norder 2002: lease lost, nothing is written\norder 2002: shipped\n";
    assert_eq!(said, expected);
    assert_eq!(shipped(&database), ["2", "2001", "2002"]);
}

#[test]
fn the_example_in_node_js_does_what_the_page_says() {
    let database = shop();
    // Modules are looked for beside the program and above.
    let tools = PathBuf::from(prepared("ACTA_TEST_NODE", "Node.js with pg"));
    let folder = tempfile::tempdir_in(tools).unwrap();
    let program = folder.path().join("example.mjs");
    fs::write(&program, &blocks("js")[0]).unwrap();
    let said = output(Command::new("node").arg(&program), &database);
    let expected = "order 3001: shipped\norder 3002: lease lost, nothing is written\norder 3002: shipped\n";
    assert_eq!(said, expected);
    assert_eq!(shipped(&database), ["2", "3001", "3002"]);
}

#[test]
fn every_function_and_every_argument_is_on_the_page() {
    let database = shop();
    let all = "SELECT '`acta.' || proname || '`' || E'\\n' || coalesce(array_to_string(proargnames, E'\\n'), '') FROM pg_proc \
               WHERE pronamespace = 'acta'::regnamespace AND proname !~ '^_'";
    let page = page();
    for function in postgres::sql(&database.url(), all).unwrap() {
        let (name, arguments) = function.split_once('\n').unwrap();
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} "))).unwrap_or_else(|| panic!("{name}"));
        // One row with all that is known of a job needs no list.
        let arguments = arguments.lines().filter(|_| name != "`acta.job`");
        for argument in arguments {
            assert!(
                row.contains(&format!("`{argument}`")) || row.contains(&format!("`{argument} ")),
                "{name}: {argument}"
            );
        }
    }
    for state in 1..=6 {
        assert!(page.contains(&format!("| `ACTA{state}` |")), "ACTA{state}");
    }
}
