//! The example does what its page says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const PREFIX: &str = "cargo run -p shop -- ";

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// What the page tells to type, and what it says that comes of it.
fn blocks(kind: &str) -> Vec<String> {
    let page = page();
    let fence = format!("```{kind}\n");
    let starts = page.split(fence.as_str()).skip(1);
    starts.map(|block| block.split("```").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn the_page_s_commands_do_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let shop = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
        command.args(line.strip_prefix(PREFIX).unwrap().split(' ')).current_dir(folder.path());
        command
    };
    let commands = blocks("sh");
    for told in ["is queued as", "was there already as"] {
        let output = shop(&commands[0]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert_eq!(said.lines().filter(|line| line.contains(told)).count(), 3, "{said}");
    }
    let database = rusqlite::Connection::open(folder.path().join(".orchestrator/acta.db")).unwrap();
    let orders: i64 = database.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap();
    assert_eq!(orders, 3, "each order is there, once");
    let mut worker = shop(&commands[1]).stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> =
        BufReader::new(worker.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(lines.join("\n"), blocks("text")[0]);
    let asked = Command::new("kill").arg(worker.id().to_string()).status().unwrap();
    assert!(asked.success());
    assert!(worker.wait().unwrap().success(), "it ends when it is asked to");
}
