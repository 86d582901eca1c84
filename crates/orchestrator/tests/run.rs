//! `orchestrator run`: a job through the queue, whatever becomes of it.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use acta_core::State;
use acta_core::store::Claim;
use acta_testkit::block_on;
use common::{Desk, wait};

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Reads a child's stderr until a line contains `text`.
fn until_says(child: &mut Child, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(child.stderr.as_mut().unwrap()).lines() {
        let line = line.unwrap();
        let is_it = line.contains(text);
        lines.push(line);
        if is_it {
            return lines;
        }
    }
    panic!("it never said {text:?}: {lines:?}");
}

#[test]
fn a_job_runs_and_its_outcome_output_log_and_timing_are_told() {
    let desk = Desk::new();
    desk.shell(
        r#"read input; echo "got $input"; echo "attempt $ACTA_ATTEMPT of $ACTA_QUEUE by $ACTA_ROBOT" >&2
           echo '{ "total": 1.10 }' > "$ACTA_RESULT_FILE""#,
        r#", "input": {"a": [1, 2]}"#,
    );
    let ended = desk.run(&["run", "job.json", "--robot", "r2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.starts_with("completed work-item-"), "{ended:?}");
    assert!(ended.out.contains("output { \"total\": 1.10 }\n"), "{ended:?}");
    assert!(ended.err.contains("got {\"a\": [1, 2]}\n"), "the log is live: {ended:?}");
    let job = &desk.jobs()[0].job;
    let id = job.identity.id.as_str();
    let listed = desk.run(&["jobs", "list", "--queue", "work", "--status", "completed"]);
    assert!(listed.out.contains(id) && listed.out.contains("1/1") && listed.out.contains("r2"), "{listed:?}");
    let run_id = job.identity.dedup_key.as_ref().unwrap().as_str();
    for name in [id, run_id] {
        let shown = desk.run(&["jobs", "show", name]);
        for part in
            ["status       completed", "attempts     1 of 1", "output       { \"total\": 1.10 }", "started", "took"]
        {
            assert!(shown.out.contains(part), "{part}: {shown:?}");
        }
        let logs = desk.run(&["jobs", "logs", name]);
        assert_eq!(logs.out, "got {\"a\": [1, 2]}\nattempt 1 of work by r2\n");
    }
    let json = desk.run(&["jobs", "show", id, "--json"]);
    let item: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(item["payload"]["jobId"], run_id);
    assert!(json.out.contains(r#""output":{ "total": 1.10 }"#), "{json:?}");
}

#[test]
fn the_environment_is_clean_but_for_what_the_definition_says() {
    let desk = Desk::new();
    desk.shell("env", r#", "env": {"COLOUR": "blue"}"#);
    let mut command = desk.command(&["run", "job.json"]);
    let ended = command.env("SHOP_TOKEN", "secret").env("LANG", "C").output().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert!(err.contains("COLOUR=blue") && err.contains("LANG=C") && err.contains("PATH="), "{err}");
    for name in
        ["ACTA_JOB_ID=job-work-", "ACTA_ITEM_ID=work-item-", "ACTA_QUEUE=work", "ACTA_FENCE=1", "ACTA_RESULT_FILE="]
    {
        assert!(err.contains(name), "{name}: {err}");
    }
    assert!(!err.contains("secret") && !err.contains("ORCHESTRATOR_ROOT") && !err.contains("DATABASE_URL"), "{err}");
}

#[test]
fn a_wrong_definition_enqueues_nothing() {
    let desk = Desk::new();
    desk.write("bad.json", "{\n  \"name\": \"work\",\n  \"comand\": [\"true\"]\n}\n");
    let ended = desk.run(&["run", "bad.json"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    assert!(ended.err.contains("error: bad.json: line 3, column 10: unknown field `comand`"), "{ended:?}");
    assert!(ended.err.contains("hint: nothing was enqueued"), "{ended:?}");
    assert!(!desk.path().join("root").exists());
    let missing = desk.run(&["run", "none.json"]);
    assert!(missing.code == Some(2) && missing.err.contains("none.json"), "{missing:?}");
}

#[test]
fn another_item_at_the_head_is_a_claim_failure_that_harms_neither() {
    let desk = Desk::new();
    desk.shell("echo ran", "");
    let first = desk.put("work", "1");
    let ended = desk.run(&["run", "job.json"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    let jobs = desk.jobs();
    let ours = &jobs[1].job.identity.id;
    assert!(ended.err.contains(first.as_str()) && ended.err.contains(ours.as_str()), "{ended:?}");
    assert!(ended.err.contains(&format!("jobs cancel {first}")), "the way out: {ended:?}");
    for found in &jobs {
        assert_eq!((found.job.standing.state, found.job.standing.attempts), (State::Ready, 0));
    }
    assert!(!ended.err.contains("ran"));
    let told = desk.run(&["jobs", "explain", ours.as_str()]);
    assert!(told.out.contains("other candidates come before it") && told.out.contains(first.as_str()), "{told:?}");
    let cancelled = desk.run(&["jobs", "cancel", first.as_str(), "--reason", "in the way"]);
    assert_eq!(cancelled.code, Some(0));
    let told = desk.run(&["jobs", "explain", ours.as_str()]);
    assert!(told.out.contains("it is the next to be claimed"), "{told:?}");
}

#[test]
fn failures_have_their_kind_and_exit_code_1() {
    let cases = [
        ("echo 'no such customer' >&2; exit 65", "", "business exception: no such customer"),
        ("echo 'disk on fire' >&2; exit 3", "", "system exception: disk on fire"),
        ("kill -9 $$", "", "system exception: killed by signal 9"),
        ("sleep 60 & sleep 60", r#", "timeout": "200ms""#, "system exception: it was ended after its timeout of 200ms"),
        ("echo '{' > $ACTA_RESULT_FILE", "", "system exception: its result file"),
    ];
    for (script, more, expected) in cases {
        let desk = Desk::new();
        desk.shell(script, more);
        let ended = desk.run(&["run", "job.json"]);
        assert_eq!(ended.code, Some(1), "{script}: {ended:?}");
        assert!(ended.out.starts_with("failed work-item-") && ended.out.contains(expected), "{script}: {ended:?}");
    }
    let desk = Desk::new();
    desk.write("job.json", r#"{"name": "work", "command": ["no-such-program"]}"#);
    let ended = desk.run(&["run", "job.json"]);
    assert!(ended.code == Some(1) && ended.out.contains("\"no-such-program\" can't be started"), "{ended:?}");
}

#[test]
fn a_failed_attempt_is_waited_out_and_tried_again() {
    let desk = Desk::new();
    let more = r#", "maxAttempts": 3, "backoff": {"initial": "50ms", "max": "1s"}"#;
    desk.shell("echo attempt $ACTA_ATTEMPT; test $ACTA_ATTEMPT = 3 || exit 1", more);
    let ended = desk.run(&["run", "job.json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err.matches("failed: exit code 1; again at").count(), 2, "{ended:?}");
    let job = &desk.jobs()[0].job;
    assert_eq!((job.standing.attempts, job.standing.fence), (3, 3));
    let shown = desk.run(&["jobs", "show", job.identity.id.as_str()]);
    assert_eq!(shown.out.matches("retried, claim").count(), 2, "{shown:?}");
    let logs = desk.run(&["jobs", "logs", job.identity.id.as_str()]);
    assert_eq!(logs.out, "attempt 1\nattempt 2\nattempt 3\n");
}

#[test]
fn c046_ctrl_c_and_term_end_the_whole_process_group_and_cancel_the_job() {
    for name in ["-INT", "-TERM"] {
        let desk = Desk::new();
        desk.shell("trap '' INT; sleep 300 & echo child $!; wait", "");
        let mut child = desk.start(&["run", "job.json"]);
        let said = until_says(&mut child, "child ");
        let sleeper = said.last().unwrap().split(' ').nth(1).unwrap().to_owned();
        signal(&child, name);
        let ended = wait(child);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert!(ended.out.starts_with("failed work-item-"), "{ended:?}");
        assert_eq!(desk.jobs()[0].job.standing.state, State::Cancelled);
        let alive = Command::new("kill").args(["-0", &sleeper]).output().unwrap();
        assert!(!alive.status.success(), "its child is gone, too");
    }
}

#[test]
fn ctrl_c_between_attempts_cancels_the_job() {
    let desk = Desk::new();
    desk.shell("exit 1", r#", "maxAttempts": 2, "backoff": {"initial": "1h", "max": "1h"}"#);
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "again at");
    signal(&child, "-INT");
    let ended = wait(child);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(desk.jobs()[0].job.standing.state, State::Cancelled);
}

#[test]
fn c032_a_cancel_from_elsewhere_reaches_the_robot() {
    let desk = Desk::new();
    desk.shell("echo started; sleep 300", r#", "lease": "300ms""#);
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "started");
    let id = desk.jobs()[0].job.identity.id.clone();
    let asked = desk.run(&["jobs", "cancel", id.as_str()]);
    assert!(asked.code == Some(0) && asked.out.contains("asked to stop"), "{asked:?}");
    let ended = wait(child);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(desk.jobs()[0].job.standing.state, State::Cancelled);
    let again = desk.run(&["jobs", "cancel", id.as_str()]);
    assert!(again.code == Some(0) && again.out.contains("nothing to do"), "{again:?}");
}

#[test]
fn c018_c023_a_job_longer_than_its_lease_runs_once() {
    let desk = Desk::new();
    desk.shell("echo run >> runs; sleep 1", r#", "lease": "300ms""#);
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "attempt 1");
    let store = desk.store();
    let namespace = acta_core::Namespace::job_queue("work").unwrap();
    let thief = acta_core::Label::new("robot", "thief").unwrap();
    // Somebody tries to take it over all the time.
    while child.try_wait().unwrap().is_none() {
        let claim = Claim::one(namespace.clone(), thief.clone());
        block_on(store.claim(claim)).unwrap();
    }
    let ended = wait(child);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(std::fs::read_to_string(desk.path().join("runs")).unwrap(), "run\n");
}

/// Stops a process while it has no write under way: one that is stopped in the middle of a write keeps SQLite's lock.
fn stop_between_writes(desk: &Desk, child: &Child) {
    let stop = || {
        signal(child, "-STOP");
        let is_stopped = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") T ");
        while !is_stopped() {
            std::thread::yield_now();
        }
    };
    if desk.provider() == "file" {
        let lock = std::fs::File::open(desk.path().join("root/.lock")).unwrap();
        lock.lock().unwrap();
        stop();
        return;
    }
    let lock = rusqlite::Connection::open(desk.path().join("root/acta.db")).unwrap();
    lock.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    stop();
    lock.execute_batch("COMMIT").unwrap();
}

#[test]
fn c018_a_job_that_is_being_stopped_is_still_held() {
    let desk = Desk::new();
    desk.shell(
        "trap 'echo cleaning up; sleep 1; echo clean; exit 0' TERM; echo started; sleep 300 & wait",
        r#", "lease": "300ms""#,
    );
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "started");
    signal(&child, "-TERM");
    let store = desk.store();
    let namespace = acta_core::Namespace::job_queue("work").unwrap();
    let thief = acta_core::Label::new("robot", "thief").unwrap();
    while child.try_wait().unwrap().is_none() {
        block_on(store.claim(Claim::one(namespace.clone(), thief.clone()))).unwrap();
    }
    let ended = wait(child);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let job = &desk.jobs()[0].job;
    assert_eq!((job.standing.state, job.standing.fence), (State::Cancelled, 1));
    let logs = desk.run(&["jobs", "logs", job.identity.id.as_str()]);
    assert_eq!(logs.out, "started\ncleaning up\nclean\n", "what it wrote while it was stopped is kept");
}

#[test]
fn an_interrupt_while_a_timeout_ends_the_job_ends_the_run() {
    let desk = Desk::new();
    let more = r#", "timeout": "100ms", "maxAttempts": 3, "backoff": {"initial": "1h", "max": "1h"}"#;
    desk.shell("trap 'echo ending' TERM; while :; do sleep 0.05; done", more);
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "ending");
    signal(&child, "-INT");
    let ended = wait(child);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(desk.jobs()[0].job.standing.state, State::Cancelled);
}

#[test]
fn what_the_group_writes_after_its_leader_is_kept() {
    let desk = Desk::new();
    let script =
        "(trap 'sleep 0.3; echo worker is done; exit' TERM; while :; do sleep 0.05; done) & echo started; wait";
    desk.shell(script, "");
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "started");
    signal(&child, "-TERM");
    assert_eq!(wait(child).code, Some(130));
    let id = desk.jobs()[0].job.identity.id.clone();
    assert!(desk.run(&["jobs", "logs", id.as_str()]).out.contains("worker is done"));
}

#[test]
fn a_robot_that_can_t_keep_a_log_enqueues_nothing() {
    let desk = Desk::new();
    desk.shell("true", "");
    std::fs::create_dir(desk.path().join("root")).unwrap();
    desk.write("root/logs", "in the way");
    let ended = desk.run(&["run", "job.json"]);
    assert!(ended.code == Some(7) && ended.err.contains("log"), "{ended:?}");
    assert!(desk.jobs().is_empty());
}

#[test]
fn a_cancel_between_attempts_is_an_end_and_no_claim_failure() {
    let desk = Desk::new();
    desk.shell("exit 1", r#", "maxAttempts": 2, "backoff": {"initial": "1s", "max": "1s"}"#);
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "again at");
    let id = desk.jobs()[0].job.identity.id.clone();
    desk.put("work", "2");
    assert_eq!(desk.run(&["jobs", "cancel", id.as_str()]).code, Some(0));
    let ended = wait(child);
    assert!(ended.code == Some(1) && ended.out.contains("cancelled"), "{ended:?}");
}

#[test]
fn a_failed_job_is_a_failure_though_nobody_reads_its_outcome() {
    let desk = Desk::new();
    desk.shell("exit 3", "");
    let mut child = desk.start(&["run", "job.json"]);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn one_item_is_one_line_of_json() {
    let desk = Desk::new();
    desk.shell("true", ", \"input\": {\n  \"a\":\n    [1,\r\n 2]\n}");
    assert_eq!(desk.run(&["run", "job.json", "--json"]).out.lines().count(), 1);
    let listed = desk.run(&["jobs", "list", "--json"]).out;
    let item: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert!(listed.lines().count() == 1 && item["payload"]["input"]["a"][1] == 2, "{listed}");
}

#[test]
fn c013_a_robot_that_was_away_is_fenced_off() {
    let desk = Desk::new();
    desk.shell("echo started; sleep 300", r#", "lease": "200ms""#);
    let mut child = desk.start(&["run", "job.json"]);
    until_says(&mut child, "started");
    stop_between_writes(&desk, &child);
    let store = desk.store();
    let namespace = acta_core::Namespace::job_queue("work").unwrap();
    let second = acta_core::Label::new("robot", "second").unwrap();
    let taken = loop {
        let claim = Claim { count: 1, ..Claim::one(namespace.clone(), second.clone()) };
        if let acta_core::store::ClaimOutcome::Claimed(mut jobs) = block_on(store.claim(claim)).unwrap().outcome {
            break jobs.remove(0);
        }
    };
    assert_eq!(taken.standing.fence, 2);
    signal(&child, "-CONT");
    let ended = wait(child);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains("lease lost"), "{ended:?}");
    let job = &desk.jobs()[0].job;
    assert_eq!((job.standing.state, job.standing.claimed_by.as_ref()), (State::Claimed, Some(&second)));
}

#[test]
fn what_a_job_writes_is_kept_but_does_not_reach_a_terminal_unescaped() {
    let desk = Desk::new();
    desk.shell(r"printf 'a\033[2Jb\nlast'; printf '\377\n' >&2; exit 65", "");
    let ended = desk.run(&["run", "job.json"]);
    assert_eq!(ended.code, Some(1));
    let id = desk.jobs()[0].job.identity.id.clone();
    let shown = desk.run(&["jobs", "show", id.as_str()]);
    assert!(!shown.out.contains('\u{1b}'), "{shown:?}");
    let logs = desk.run(&["jobs", "logs", id.as_str()]);
    assert!(
        logs.out.contains("a\u{1b}[2Jb\n") && logs.out.contains("last\n"),
        "a file gets what was written: {logs:?}"
    );
    let mut script = Command::new("script");
    let binary = env!("CARGO_BIN_EXE_orchestrator");
    let line = format!("{binary} --root root --provider {} jobs logs {id}", desk.provider());
    script.envs(desk.database_url().map(|url| ("DATABASE_URL", url)));
    let Ok(output) = script.args(["-qec", &line, "/dev/null"]).current_dir(desk.path()).output() else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("a\\u{1b}[2Jb") && !text.contains("\u{1b}[2J"), "{text:?}");
}
