//! Every command on every substrate: what it says, word for word, and that nobody could tell them apart.

mod common;

use std::fmt::Write;

use common::{Desk, Ended, steady};

/// The same command line on SQLite, on files and on PostgreSQL.
struct All {
    desks: [Desk; 3],
    ids: [Vec<String>; 3],
    text: String,
}

impl All {
    fn new() -> Self {
        let desks = ["sqlite", "file", "postgres"].map(Desk::on);
        Self { desks, ids: Default::default(), text: String::new() }
    }

    fn write(&self, name: &str, text: &str) {
        for desk in &self.desks {
            desk.write(name, text);
        }
    }

    /// Runs a command; `{0}` in it is the first id that was added. All must say the same, but for ids and instants.
    fn run(&mut self, code: i32, arguments: &[&str]) {
        let mut told = Vec::new();
        for (desk, ids) in self.desks.iter().zip(&mut self.ids) {
            let fill = |argument: &&str| {
                let filled = |text: String, (index, id): (usize, &String)| text.replace(&format!("{{{index}}}"), id);
                ids.iter().enumerate().fold((*argument).to_owned(), filled)
            };
            let filled: Vec<String> = arguments.iter().map(fill).collect();
            let Ended { code: exit, out, err } = desk.run(&filled.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "{arguments:?} moves the cursor: {out}{err}");
            assert_eq!(exit, Some(code), "{arguments:?}: {out}{err}");
            if arguments.starts_with(&["buildout", "add"]) && !arguments.contains(&"--json") {
                ids.extend(out.lines().map(ToOwned::to_owned));
            }
            told.push(steady(&format!("code {code}\n-- stdout\n{out}-- stderr\n{err}"), desk));
        }
        assert_eq!(told[0], told[1], "{arguments:?}");
        assert_eq!(told[0], told[2], "{arguments:?}");
        let shown: String = arguments.join(" ").escape_debug().collect();
        writeln!(self.text, "$ orchestrator {shown}\n{}", told[0]).unwrap();
    }

    /// All items of each, in the order of their rows: they must be the same.
    fn items_are_the_same(&self) {
        let items = |desk: &Desk| {
            let item = |found| serde_json::to_string_pretty(&acta_item(found)).unwrap();
            steady(&desk.jobs().iter().map(item).collect::<Vec<_>>().join("\n"), desk)
        };
        assert_eq!(items(&self.desks[0]), items(&self.desks[1]));
        assert_eq!(items(&self.desks[0]), items(&self.desks[2]));
    }
}

fn acta_item(found: &acta_core::store::Found) -> acta_core::Item {
    acta_core::Item::new(&found.namespace, &found.job)
}

const HOSTILE: &str = r#"{"hostile": "\u001b[2J", "raw": "\u202e"}"#;

#[test]
fn items_are_added_claimed_and_settled() {
    let mut all = All::new();
    let inv = ["--queue", "inv"];
    let mut run = |code, arguments: &[&str]| all.run(code, arguments);
    run(0, &["buildout", "add", inv[0], inv[1], "--payload", HOSTILE, "--lane", "north", "--key", "INV-1042"]);
    run(0, &["buildout", "add", inv[0], inv[1], "--lane", "north", "--max-attempts", "3", "--lease", "30m"]);
    run(0, &["buildout", "add", inv[0], inv[1], "--run-at", "2h", "--retryable", "false"]);
    run(0, &["buildout", "add", inv[0], inv[1], "--key", "K", "--unique", "--payload", "1"]);
    run(0, &["buildout", "add", inv[0], inv[1], "--key", "K", "--unique", "--payload", "2"]);
    run(0, &["buildout", "add", inv[0], inv[1], "--key", "K", "--unique", "--payload", "1", "--json"]);
    run(0, &["buildout", "list", inv[0], inv[1]]);
    run(3, &["buildout", "claim", inv[0], inv[1], "--robot", "r1", "--expect", "{1}"]);
    run(0, &["buildout", "claim", inv[0], inv[1], "--robot", "r1", "--expect", "{0}"]);
    run(0, &["buildout", "claim", inv[0], inv[1], "--robot", "o'brien \"2\"", "--count", "5", "--lease", "1h"]);
    run(4, &["buildout", "claim", inv[0], inv[1], "--robot", "r1"]);
    run(4, &["buildout", "claim", "--queue", "nobody", "--robot", "r1"]);
    run(0, &["buildout", "start", "{0}", "--robot", "r1"]);
    run(0, &["buildout", "progress", "{0}", "--robot", "r1", "half \u{1b}[2J way"]);
    run(0, &["buildout", "heartbeat", "{0}", "--robot", "r1", "--lease", "1h"]);
    run(0, &["buildout", "heartbeat", "{0}", "--fence", "1", "--json"]);
    run(0, &["jobs", "explain", "{1}"]);
    run(0, &["jobs", "show", "{0}"]);
    run(3, &["buildout", "complete", "{0}", "--robot", "zombie"]);
    run(3, &["buildout", "complete", "{0}", "--robot", "r1", "--fence", "7"]);
    run(0, &["buildout", "complete", "{0}", "--robot", "r1", "--output", "{ \"pages\":\t1e400 }"]);
    run(0, &["buildout", "complete", "{0}", "--robot", "r1", "--output", "{ \"pages\":\t1e400 }"]);
    run(5, &["buildout", "fail", "{0}", "--robot", "r1", "--reason", "too late"]);
    run(0, &["jobs", "show", "{0}", "--json"]);
    run(0, &["buildout", "claim", inv[0], inv[1], "--robot", "r2"]);
    run(
        0,
        &[
            "buildout",
            "fail",
            "{1}",
            "--robot",
            "r2",
            "--reason",
            "no \u{1b}[31mluck",
            "--code",
            "E7",
            "--retry-after",
            "1h",
        ],
    );
    run(0, &["jobs", "show", "{1}"]);
    run(0, &["buildout", "fail", "{3}", "--robot", "o'brien \"2\"", "--reason", "rejected", "--business", "--json"]);
    run(5, &["buildout", "release", "{2}", "--robot", "r1"]);
    run(6, &["buildout", "complete", "nobody-item-x-1", "--robot", "r1"]);
    run(6, &["jobs", "logs", "{0}"]);
    run(0, &["buildout", "add", inv[0], inv[1]]);
    run(0, &["buildout", "claim", inv[0], inv[1], "--robot", "r3", "--json"]);
    run(0, &["buildout", "start", "{5}", "--robot", "r3", "--json"]);
    run(0, &["buildout", "progress", "{5}", "--robot", "r3", "half", "--json"]);
    run(0, &["jobs", "cancel", "{5}", "--json"]);
    run(0, &["jobs", "list", "--status", "claimed"]);
    run(0, &["buildout", "heartbeat", "{5}", "--robot", "r3"]);
    run(0, &["jobs", "explain", "{5}", "--json"]);
    run(0, &["buildout", "complete", "{5}", "--robot", "r3", "--json"]);
    run(0, &["buildout", "list", inv[0], inv[1], "--json", "--limit", "1"]);
    all.items_are_the_same();
    insta::assert_snapshot!("buildout", all.text);
}

#[test]
fn operators_look_and_act() {
    let mut all = All::new();
    all.write("rows.csv", "id,amount,lane,key,runAt\n1,\"1,50\",a,K1,\n2,,a,K2,\n3,7,b,,2h\n");
    let mut run = |code, arguments: &[&str]| all.run(code, arguments);
    run(0, &["queues", "list"]);
    run(0, &["buildout", "add", "--transactions", "t", "--from", "rows.csv"]);
    run(0, &["buildout", "add", "--namespace", "plain", "--priority", "80", "--payload", "[1]"]);
    run(0, &["queues", "list"]);
    run(0, &["queues", "list", "--json"]);
    run(0, &["queues", "show", "--transactions", "t"]);
    run(6, &["queues", "show", "--queue", "t"]);
    run(2, &["queues", "show"]);
    run(0, &["lanes", "list", "--transactions", "t"]);
    run(0, &["lanes", "list", "--transactions", "t", "--json"]);
    run(0, &["lanes", "list", "--transactions", "t", "--limit", "1"]);
    run(6, &["lanes", "list", "--queue", "t"]);
    run(0, &["lanes", "show", "a", "--transactions", "t"]);
    run(6, &["lanes", "show", "z", "--transactions", "t"]);
    run(0, &["lanes", "pause", "a", "--transactions", "t", "--reason", "audit"]);
    run(0, &["lanes", "pause", "a", "--transactions", "t", "--json"]);
    run(0, &["jobs", "explain", "{0}"]);
    run(0, &["jobs", "explain", "{1}"]);
    run(0, &["jobs", "explain", "{2}"]);
    run(4, &["buildout", "claim", "--transactions", "t", "--robot", "r"]);
    run(0, &["lanes", "resume", "a", "--transactions", "t"]);
    run(6, &["lanes", "resume", "z", "--transactions", "t"]);
    run(0, &["lanes", "skip", "a", "--transactions", "t", "--dry-run"]);
    run(0, &["lanes", "skip", "a", "--transactions", "t", "--reason", "broken"]);
    run(0, &["lanes", "show", "a", "--transactions", "t", "--json"]);
    run(0, &["queues", "pause", "--namespace", "plain"]);
    run(4, &["buildout", "claim", "--namespace", "plain", "--robot", "r"]);
    run(0, &["jobs", "explain", "{3}"]);
    run(1, &["doctor"]);
    run(0, &["queues", "resume", "--namespace", "plain", "--json"]);
    run(0, &["doctor"]);
    run(0, &["jobs", "pause", "--transactions", "t", "--dry-run"]);
    run(2, &["jobs", "pause", "--transactions", "t"]);
    run(2, &["jobs", "pause"]);
    run(2, &["jobs", "pause", "{1}", "--transactions", "t"]);
    run(0, &["jobs", "pause", "--transactions", "t", "--yes", "--reason", "night"]);
    run(0, &["jobs", "resume", "{1}", "{2}", "{1}"]);
    run(6, &["jobs", "resume", "{1}", "nobody"]);
    run(0, &["jobs", "cancel", "--lane", "b", "--yes"]);
    run(0, &["jobs", "restart", "--transactions", "t", "--status", "cancelled", "--since", "1h", "--yes", "--json"]);
    run(0, &["jobs", "cancel", "--key", "nothing", "--yes"]);
    run(0, &["jobs", "signal", "{1}", "--name", "go"]);
    run(0, &["jobs", "list", "--status", "pending", "--json"]);
    run(0, &["jobs", "list", "--transactions", "t", "--lane", "a"]);
    all.items_are_the_same();
    insta::assert_snapshot!("operators", all.text);
}

#[test]
fn bad_items_are_named_by_line_and_column_and_add_nothing() {
    let mut all = All::new();
    for (name, text) in [
        ("syntax.jsonl", "{\"payload\": 1}\n\n{\"payload\": }\n"),
        ("unknown.jsonl", "{\"payload\": 1}\n{\"payload\": 2, \"prio\": 1}\n"),
        ("type.jsonl", "{\"payload\": 1, \"maxAttempts\": \"three\"}\n"),
        ("lane.jsonl", "{\"payload\": 1}\n{\"payload\": 1, \"lane\": \"\"}\n"),
        ("unique.jsonl", "{\"payload\": 1, \"unique\": true}\n"),
        ("when.jsonl", "{\"payload\": 1, \"runAt\": \"soon\"}\n"),
        ("priority.jsonl", "{\"payload\": 1}\n{\"payload\": 1, \"priority\": 7}\n"),
        ("attempts.jsonl", "{\"payload\": 1}\n{\"payload\": 1, \"maxAttempts\": 0}\n"),
        ("empty.jsonl", "\n"),
        ("short.csv", "a,b\n1,2\n3\n"),
        ("twice.csv", "a,a\n1,2\n"),
        ("cell.csv", "a,retryable\n1,true\n2,maybe\n"),
        ("all.csv", "payload,other\n1,2\n"),
        ("what.txt", "1\n"),
    ] {
        all.write(name, text);
        let code = if name == "empty.jsonl" { 0 } else { 2 };
        all.run(code, &["buildout", "add", "--queue", "q", "--from", name]);
    }
    all.run(2, &["buildout", "add", "--queue", "q", "--from", "nowhere.csv"]);
    all.run(2, &["buildout", "add", "--queue", "q", "--payload", "{\"a\":"]);
    all.run(2, &["buildout", "add", "--queue", "q", "--payload", "1", "--from", "what.txt"]);
    all.run(2, &["buildout", "add", "--queue", "q", "--priority", "7"]);
    all.run(2, &["buildout", "add", "--payload", "1"]);
    all.run(2, &["buildout", "claim", "--queue", "q"]);
    all.run(2, &["buildout", "claim", "--queue", "q", "--robot", "r", "--lease", "0s"]);
    all.run(2, &["buildout", "claim", "--queue", "q", "--robot", "r", "--count", "0"]);
    all.run(2, &["buildout", "complete", "x", "--output", "1"]);
    all.run(2, &["buildout", "fail", "x", "--robot", "r"]);
    all.run(2, &["buildout", "finish", "x"]);
    all.run(2, &["lanes", "pause", "--queue", "q"]);
    all.run(2, &["lanes", "pause", "", "--queue", "q"]);
    all.run(2, &["copy", "--from", "acta.db", "--to", "file:x"]);
    all.run(2, &["copy", "--from", "file:x", "--to", "file:./x"]);
    all.run(6, &["copy", "--from", "file:x", "--to", "sqlite:y"]);
    all.run(2, &["completions", "cmd"]);
    for desk in &all.desks {
        assert!(!desk.path().join("root").exists() || desk.jobs().is_empty(), "nothing was added");
    }
    insta::assert_snapshot!("bad_items", all.text);
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    let desk = Desk::on("sqlite");
    let told = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = desk.command(arguments);
        command.env_remove("ORCHESTRATOR_ROOT").env_remove("TS_QUEUE_PROVIDER").envs(environment.iter().copied());
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        steady(&format!("$ {environment:?} {arguments:?}\n{:?}\n{out}{err}\n", output.status.code()), &desk)
    };
    let show = ["config", "show"];
    let mut text = told(&show, &[]);
    desk.write("orchestrator.toml", "root = \"ledger\"\nprovider = \"file\"\n");
    text += &told(&show, &[]);
    text += &told(&show, &[("TS_QUEUE_PROVIDER", "sqlite")]);
    text += &told(&["config", "show", "--root", "elsewhere", "--json"], &[("ORCHESTRATOR_ROOT", "x")]);
    for wrong in ["root = 1\n", "root = \"a\"\nprovder = \"file\"\n", "root = \"a\n", "provider = \"oracle\"\n"] {
        desk.write("orchestrator.toml", wrong);
        text += &told(&show, &[]);
    }
    insta::assert_snapshot!("settings", text);
}

#[test]
fn a_ledger_is_copied_backed_up_and_looked_after() {
    let desk = Desk::on("file");
    desk.put("inv", "1");
    let mut text = String::new();
    let mut run = |code: i32, arguments: &[&str]| {
        let Ended { code: exit, out, err } = desk.run(arguments);
        assert_eq!(exit, Some(code), "{arguments:?}: {out}{err}");
        let told = format!("$ orchestrator {}\ncode {code}\n-- stdout\n{out}-- stderr\n{err}\n", arguments.join(" "));
        text.push_str(&steady(&told, &desk));
        out
    };
    run(0, &["backup", "before"]);
    run(2, &["backup", "before"]);
    run(6, &["backup", "other", "--root", "nowhere"]);
    let id = run(0, &["buildout", "claim", "--queue", "inv", "--robot", "r"]);
    run(5, &["copy", "--from", "file:root", "--to", "sqlite:new.db"]);
    let id = id.split('"').nth(3).unwrap();
    run(0, &["buildout", "release", id, "--robot", "r"]);
    run(0, &["copy", "--from", "file:root", "--to", "sqlite:new/acta.db"]);
    run(5, &["buildout", "claim", "--queue", "inv", "--robot", "r"]);
    run(1, &["doctor"]);
    run(0, &["jobs", "list", "--root", "new", "--provider", "sqlite"]);
    run(0, &["copy", "--from", "file:root", "--to", "sqlite:new/acta.db", "--json"]);
    run(5, &["copy", "--from", "file:root", "--to", "sqlite:new/acta.db", "--give-up"]);
    run(0, &["jobs", "list", "--root", "typo"]);
    run(0, &["queues", "list", "--root", "new"]);
    assert!(!desk.path().join("typo").exists(), "looking makes nothing");
    run(5, &["copy", "--from", "file:before", "--to", "sqlite:new/acta.db"]);
    run(1, &["doctor", "--root", "nowhere"]);
    std::fs::write(desk.path().join("before/queues/hand.json"), "{\"items\": [{\"id\": \"x\", \"payload\": 1}]}")
        .unwrap();
    run(1, &["doctor", "--root", "before"]);
    std::fs::remove_file(desk.path().join("before/queues/hand.json")).unwrap();
    let broken = desk.path().join("before/queues/inv.json");
    std::fs::write(&broken, "{\"items\": [\n  {\"id\": 7}]}").unwrap();
    run(1, &["doctor", "--root", "before"]);
    run(7, &["jobs", "list", "--root", "before"]);
    run(7, &["jobs", "cancel", "--status", "queued", "--dry-run", "--root", "before"]);
    run(7, &["jobs", "cancel", "--status", "queued", "--yes", "--root", "before"]);
    run(7, &["queues", "list", "--root", "before"]);
    run(7, &["queues", "show", "--root", "before", "--queue", "inv"]);
    run(7, &["buildout", "claim", "--root", "before", "--queue", "inv", "--robot", "r"]);
    std::fs::write(desk.path().join("new/acta.db"), "no ledger at all, but long enough to have a header".repeat(50))
        .unwrap();
    for name in ["acta.db-wal", "acta.db-shm"] {
        let _ = std::fs::remove_file(desk.path().join("new").join(name));
    }
    run(1, &["doctor", "--root", "new", "--provider", "sqlite", "--json"]);
    insta::assert_snapshot!("whole", text);
}

/// Completions and manual pages are made of the same definitions as the help.
#[test]
fn completions_and_manual_pages_know_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = desk.run(&["completions", shell]).out;
        for word in ["buildout", "heartbeat", "completions", "dry-run"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(desk.run(&["man", "pages"]).code, Some(0));
    for page in ["orchestrator.1", "orchestrator-buildout-add.1", "orchestrator-lanes-skip.1"] {
        let text = std::fs::read_to_string(desk.path().join("pages").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
}

/// A narrow terminal, no colour, nobody at the terminal: plain words in lines.
#[test]
fn no_terminal_and_no_colour_is_plain_text() {
    let desk = Desk::new();
    desk.put("inv", r#"{"hostile": "\u001b[2J"}"#);
    for (name, value) in [("NO_COLOR", "1"), ("COLUMNS", "20"), ("TERM", "dumb")] {
        for arguments in [&["jobs", "list"][..], &["queues", "list"], &["jobs", "lst"], &["--help"]] {
            let output = desk.command(arguments).env(name, value).output().unwrap();
            let is_plain = |bytes: &[u8]| !bytes.contains(&0x1b);
            assert!(is_plain(&output.stdout) && is_plain(&output.stderr), "{name} {arguments:?}");
        }
    }
}

/// A table that is too wide for the terminal is a block a row: nothing is cut, nothing wraps.
#[test]
fn a_narrow_terminal_gets_a_block_a_row() {
    let desk = Desk::new();
    let id = desk.put("inv", r#"{"hostile": "\u001b[2J"}"#);
    let binary = env!("CARGO_BIN_EXE_orchestrator");
    let line = format!("stty cols 40; {binary} --root root --provider {} jobs list", desk.provider());
    let mut script = std::process::Command::new("script");
    let output = script.args(["-qec", &line, "/dev/null"]).current_dir(desk.path()).output();
    let text = String::from_utf8_lossy(&output.unwrap().stdout).replace('\r', "");
    assert!(text.contains(&format!("ID          {id}\nSTATUS      queued\n")), "{text}");
    // Where colours could be, they are wanted or not.
    for (no_color, is_coloured) in [("", true), ("NO_COLOR=1 ", false)] {
        let line = format!("TERM=xterm {no_color}{binary} jobs lst");
        let mut script = std::process::Command::new("script");
        let output = script.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR").output().unwrap();
        assert_eq!(output.stdout.contains(&0x1b), is_coloured, "{line}");
    }
}

/// Killed while it adds a hundred thousand items: all of them are there, or none.
#[test]
fn a_command_that_is_killed_while_it_adds_has_added_all_or_none() {
    const ROWS: usize = 100_000;
    let mut rows = String::new();
    for row in 0..ROWS {
        writeln!(rows, r#"{{"payload": {{"n": {row}}}, "lane": "lane {}", "key": "K{row}"}}"#, row % 200).unwrap();
    }
    let mut outcomes = std::collections::BTreeSet::new();
    for provider in ["sqlite", "file"] {
        let whole = {
            let desk = Desk::on(provider);
            desk.write("rows.jsonl", &rows);
            let start = std::time::Instant::now();
            let ended = desk.run(&["buildout", "add", "--queue", "big", "--from", "rows.jsonl"]);
            assert_eq!((ended.code, ended.out.lines().count()), (Some(0), ROWS));
            start.elapsed()
        };
        for part in 1..=6 {
            let desk = Desk::on(provider);
            desk.write("rows.jsonl", &rows);
            let mut child = desk.start(&["buildout", "add", "--queue", "big", "--from", "rows.jsonl"]);
            std::thread::park_timeout(whole * part / 6);
            child.kill().unwrap();
            child.wait().unwrap();
            let overview =
                acta_testkit::block_on(desk.store().queues(acta_core::store::QueueFilter::default())).unwrap();
            let count: u64 = overview.queues.iter().flat_map(|(_, tallies)| tallies.values()).sum();
            assert!(count == 0 || count == ROWS as u64, "{provider}, after {part} of 6 parts: {count}");
            outcomes.insert((provider, count));
        }
    }
    println!("{outcomes:?}");
    for provider in ["sqlite", "file"] {
        assert!(outcomes.contains(&(provider, 0)), "a kill came before the end");
    }
}
