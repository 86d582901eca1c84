//! The commands in the documents do what the documents say.

mod common;

use std::path::{Path, PathBuf};

use common::Desk;

const COMMAND: &str = "cargo run --release -p orchestrator -- ";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of a document's shell blocks, in order.
fn commands(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join(document)).unwrap();
    let mut is_shell = false;
    let mut commands = Vec::new();
    for line in text.lines() {
        match line {
            "```sh" => is_shell = true,
            "```" => is_shell = false,
            _ if is_shell => commands.push(line.to_owned()),
            _ => {}
        }
    }
    commands
}

/// Runs a documented command in the repository, with a root of the test's own; exit code and stdout.
fn run(desk: &Desk, line: &str) -> (Option<i32>, String) {
    let arguments: Vec<&str> = line.strip_prefix(COMMAND).unwrap().split(' ').collect();
    let output = desk.command(&arguments).current_dir(repository()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_readme_s_commands_do_what_it_says() {
    let desk = Desk::new();
    let commands = commands("README.md");
    assert_eq!(commands[0], format!("{COMMAND}run examples/invoices/job.json"), "the first command");
    let (code, out) = run(&desk, &commands[0]);
    assert!(code == Some(0) && out.starts_with("completed invoices-item-"), "{out}");
    let others: Vec<&String> = commands[1..].iter().filter(|line| line.starts_with(COMMAND)).collect();
    assert_eq!(others.len(), 2);
    for line in others {
        let (code, out) = run(&desk, line);
        assert!(code == Some(0) && out.contains("invoices-item-"), "{line}: {out}");
    }
    assert!(commands.contains(&"./test".to_owned()));
}

/// What the pages show is typed into a shell, line by line, in a folder that has nothing.
#[test]
fn the_pages_for_operators_do_what_they_show() {
    for page in ["docs/OPERATING.md", "docs/FILES.md", "docs/OUTBOX.md"] {
        let desk = Desk::new();
        let binary = Path::new(env!("CARGO_BIN_EXE_orchestrator")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        let script = commands(page).join("\n");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-euxc", &script]).current_dir(desk.path()).env("PATH", path);
        shell.env_remove("ORCHESTRATOR_ROOT").env_remove("TS_QUEUE_PROVIDER");
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {said}");
        assert!(script.lines().count() > 3);
    }
}

#[test]
fn the_example_s_page_tells_what_it_prints() {
    let desk = Desk::new();
    let page = std::fs::read_to_string(repository().join("examples/invoices/README.md")).unwrap();
    let commands = commands("examples/invoices/README.md");
    let (code, out) = run(&desk, &commands[0]);
    let output = out.lines().nth(1).unwrap();
    assert!(code == Some(0) && page.contains(output), "{out}");
    let (code, out) = run(&desk, &commands[1]);
    let exception = out.lines().nth(1).unwrap();
    assert!(code == Some(1) && page.contains(exception), "{out}");
}

#[test]
fn the_documented_fields_of_a_definition_are_the_ones_that_are_read() {
    let page = std::fs::read_to_string(repository().join("docs/ROBOTS.md")).unwrap();
    let desk = Desk::new();
    let definition = r#"{"name": "work", "command": ["true"], "queue": "q", "cwd": ".", "env": {"A": "b"}, "input": 1,
        "maxAttempts": 2, "retryable": false, "backoff": "none", "lease": "1m", "timeout": "1m", "schedule": "0 0 * * *",
        "timezone": "Europe/Berlin"}"#;
    desk.write("job.json", definition);
    let ended = desk.run(&["run", "job.json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let fields: serde_json::Value = serde_json::from_str(definition).unwrap();
    for field in fields.as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{field}`")), "{field} is not documented");
    }
}

#[test]
fn no_source_file_is_longer_than_six_hundred_lines() {
    let mut folders = vec![repository().join("crates"), repository().join("benches")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let lines = std::fs::read_to_string(&path).unwrap().lines().count();
                assert!(lines <= 600, "{} has {lines} lines", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "all of them were looked at");
}
