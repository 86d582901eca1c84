//! The command line: exit code, stdout and stderr together.

mod common;

use common::{Desk, Ended, steady};

fn told(desk: &Desk, arguments: &[&str]) -> String {
    let Ended { code, out, err } = desk.run(arguments);
    let shown: String = arguments.join(" ").escape_debug().collect();
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "nothing moves the cursor");
    let text = format!("$ orchestrator {shown}\ncode {code:?}\n-- stdout\n{out}-- stderr\n{err}");
    steady(&text, desk)
}

/// The commands that a help page names.
fn commands_of(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name =
        |line: &str| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()).map(ToOwned::to_owned);
    listed.filter_map(name).collect()
}

#[test]
fn help_is_written_down() {
    let desk = Desk::new();
    let mut text = String::new();
    let mut waiting: std::collections::VecDeque<Vec<String>> = [Vec::new()].into();
    let mut pages = 0;
    while let Some(path) = waiting.pop_front() {
        let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let page = told(&desk, &arguments).replace(&format!("{}/root", "[folder]"), "[root]");
        waiting.extend(commands_of(&page).into_iter().map(|command| [path.clone(), vec![command]].concat()));
        text.push_str(&page);
        text.push('\n');
        pages += 1;
    }
    assert!(pages >= 40, "{pages}");
    insta::assert_snapshot!("help", text);
}

#[test]
fn wrong_usage_is_exit_2_with_a_way_out() {
    let desk = Desk::new();
    let mut text = String::new();
    let long = "x".repeat(10_000);
    desk.shell("true", "");
    for arguments in [
        &["jobs", "lst"][..],
        &["jobs", "list", "--stauts", "failed"],
        &["jobs", "list", "--status", "broken"],
        &["jobs", "list", "--queue", "../x"],
        &["jobs", "list", "--queue", "a b"],
        &["jobs", "list", "--queue", "o'brien"],
        &["jobs", "list", "--queue", "名前"],
        &["jobs", "list", "--queue", ""],
        &["jobs", "list", "--queue", "a", "--namespace", "b"],
        &["jobs", "list", "--lane", ""],
        &["jobs", "list", "--lane", "a\u{1b}[2J"],
        &["jobs", "list", "--since", "yesterday"],
        &["jobs", "list", "--limit", "0"],
        &["jobs", "list", "--limit", "1e309"],
        &["jobs", "show", "../../etc/passwd"],
        &["jobs", "show", "a", "--root", "root", "--provider", "oracle"],
        &["jobs", "signal", "a", "--name", "go", "--payload", "{"],
        &["run", "job.json", "--robot", "a\nb"],
    ] {
        let told = told(&desk, arguments);
        assert!(told.contains("code Some(2)"), "{told}");
        text.push_str(&told);
        text.push('\n');
    }
    let ended = desk.run(&["jobs", "list", "--queue", &long]);
    assert!(ended.code == Some(2) && ended.err.len() < 1_000, "{ended:?}");
    insta::assert_snapshot!("usage", text);
    let files: Vec<_> = std::fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["job.json"], "nothing was made");
}

#[test]
fn what_is_not_there_is_exit_6_and_an_unreadable_ledger_7() {
    let desk = Desk::new();
    let mut text = String::new();
    for arguments in [
        &["jobs", "show", "nobody"][..],
        &["jobs", "logs", "nobody"],
        &["jobs", "explain", "nobody-item-abc-12345"],
        &["jobs", "cancel", "job-nobody-abc-12345"],
        &["jobs", "list", "--queue", "nobody"],
        &["jobs", "list"],
    ] {
        text.push_str(&told(&desk, arguments));
        text.push('\n');
    }
    desk.put("Mail", "1");
    text.push_str(&told(&desk, &["jobs", "list", "--queue", "mail"]));
    std::fs::write(desk.path().join("root/acta.db"), "no ledger at all, but long enough to have a header".repeat(50))
        .unwrap();
    for name in ["acta.db-wal", "acta.db-shm"] {
        let _ = std::fs::remove_file(desk.path().join("root").join(name));
    }
    text.push_str(&told(&desk, &["jobs", "list"]));
    insta::assert_snapshot!("absent", text);
}

#[test]
fn an_operator_s_acts_are_told_and_kept() {
    let desk = Desk::new();
    let id = desk.put("work", r#"{"hostile": "\u001b[2J"}"#);
    let id = id.as_str();
    let mut text = String::new();
    for arguments in [
        &["jobs", "pause", id, "--reason", "wait for \u{1b}[2J the auditor"][..],
        &["jobs", "pause", id],
        &["jobs", "explain", id],
        &["jobs", "resume", id],
        &["jobs", "signal", id, "--name", "go", "--payload", "[1]"],
        &["jobs", "restart", id],
        &["jobs", "cancel", id, "--json"],
        &["jobs", "cancel", id],
        &["jobs", "restart", id, "--actor", "night shift"],
        &["jobs", "explain", id, "--json"],
    ] {
        text.push_str(&told(&desk, arguments));
        text.push('\n');
    }
    let shown = desk.run(&["jobs", "show", id]).out;
    assert!(!shown.contains('\u{1b}'));
    for part in
        ["paused, by operator, because wait for \\u{1b}[2J the auditor", "restarted, by night shift", "signalled"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    insta::assert_snapshot!("acts", text);
}
