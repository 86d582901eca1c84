//! Failures that users of other products have reported, tried on the command line of both substrates.

mod common;

use std::fmt::Write;

use acta_testkit::block_on;
use common::{Desk, Ended};

const PROVIDERS: [&str; 2] = ["sqlite", "file"];

fn run(desk: &Desk, code: i32, arguments: &[&str]) -> Ended {
    let ended = desk.run(arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    ended
}

fn add(desk: &Desk, more: &[&str]) -> String {
    let arguments = [&["buildout", "add", "--transactions", "t"], more].concat();
    run(desk, 0, &arguments).out.trim_end().to_owned()
}

fn claim(desk: &Desk, code: i32) -> String {
    let out = run(desk, code, &["buildout", "claim", "--transactions", "t", "--robot", "r"]).out;
    out.split('"').nth(3).unwrap_or_default().to_owned()
}

/// However far an instant lies ahead, nothing comes early; what is no instant is refused.
#[test]
fn c074_far_instants_are_kept_and_impossible_ones_refused() {
    for provider in PROVIDERS {
        let desk = Desk::on(provider);
        for later in ["2147483647ms", "2147483648ms", "30d", "3650d", "9999-12-30T00:00:00Z"] {
            let id = add(&desk, &["--run-at", later]);
            assert!(run(&desk, 0, &["jobs", "show", &id]).out.contains("(scheduled)"), "{later}");
        }
        claim(&desk, 4);
        for wrong in ["10000-01-01T00:00:00Z", "9223372036854775807d", "-1s", "NaN", "1e30", "1e30s", ""] {
            run(&desk, 2, &["buildout", "add", "--transactions", "t", &format!("--run-at={wrong}")]);
        }
        let past = add(&desk, &["--run-at", "1970-01-01T00:00:00Z"]);
        assert_eq!(claim(&desk, 0), past);
    }
}

/// Loading a wave again adds what was missing, and says what was there.
#[test]
fn c131_a_wave_that_is_loaded_again_is_there_once() {
    for provider in PROVIDERS {
        let desk = Desk::on(provider);
        let rows = |count: usize| {
            let mut rows = String::from("key,amount\n");
            for row in 0..count {
                writeln!(rows, "INV-{row},{row}").unwrap();
            }
            rows
        };
        desk.write("wave.csv", &rows(300));
        let load = ["buildout", "add", "--transactions", "t", "--from", "wave.csv", "--unique"];
        assert_eq!(run(&desk, 0, &load).out.lines().count(), 300);
        desk.write("wave.csv", &rows(800));
        let again = run(&desk, 0, &load);
        assert_eq!(again.out.lines().count(), 800);
        assert_eq!(again.err, "already there, by key: 300 of 800\n");
        assert_eq!(desk.jobs().len(), 800);
    }
}

/// A unique key stands in no retry's way, by itself or by hand; only another item with it is told who has it.
#[test]
fn c132_a_unique_key_does_not_hinder_the_retry_of_its_item() {
    for provider in PROVIDERS {
        let desk = Desk::on(provider);
        let id = add(&desk, &["--key", "INV-1", "--unique"]);
        assert_eq!(claim(&desk, 0), id);
        let fail = ["buildout", "fail", &id, "--robot", "r", "--reason", "down", "--retry-after", "0s"];
        run(&desk, 0, &fail);
        assert_eq!(claim(&desk, 0), id, "retried by itself");
        run(&desk, 0, &["buildout", "fail", &id, "--robot", "r", "--reason", "rejected", "--business"]);
        claim(&desk, 4);
        run(&desk, 0, &["jobs", "restart", &id]);
        assert_eq!(claim(&desk, 0), id, "restarted by hand");
        assert_eq!(add(&desk, &["--key", "INV-1", "--unique"]), id, "a new one is told whose key it is");
    }
}

/// What has ended keeps its outcome, whatever is said of it afterwards.
#[test]
fn c133_a_final_item_is_not_changed_by_another_result() {
    for provider in PROVIDERS {
        let desk = Desk::on(provider);
        let id = add(&desk, &[]);
        claim(&desk, 0);
        run(&desk, 0, &["buildout", "complete", &id, "--robot", "r", "--output", "1"]);
        let shown = run(&desk, 0, &["jobs", "show", &id, "--json"]).out;
        run(&desk, 5, &["buildout", "complete", &id, "--robot", "r", "--output", "2"]);
        run(&desk, 5, &["buildout", "fail", &id, "--robot", "r", "--reason", "x", "--business"]);
        run(&desk, 5, &["buildout", "release", &id, "--robot", "r"]);
        run(&desk, 3, &["buildout", "heartbeat", &id, "--robot", "r"]);
        run(&desk, 3, &["buildout", "complete", &id, "--robot", "other"]);
        assert_eq!(run(&desk, 0, &["jobs", "show", &id, "--json"]).out, shown);
    }
}

/// A pause holds for every process, old and new, and tells since when, by whom and why.
#[test]
fn c140_a_pause_holds_everywhere_and_tells_who_paused() {
    for provider in PROVIDERS {
        let desk = Desk::on(provider);
        let id = add(&desk, &["--lane", "north"]);
        add(&desk, &["--run-at", "1970-01-01T00:00:00Z"]);
        let other = desk.store();
        run(&desk, 0, &["queues", "pause", "--transactions", "t", "--actor", "ann", "--reason", "audit"]);
        run(&desk, 0, &["lanes", "pause", "north", "--transactions", "t", "--actor", "bob"]);
        claim(&desk, 4);
        let namespace = acta_core::Namespace::transaction_queue("t").unwrap();
        let robot = acta_core::Label::new("robot", "r").unwrap();
        let answer = block_on(other.claim(acta_core::store::Claim::one(namespace, robot))).unwrap();
        assert!(matches!(answer.outcome, acta_core::store::ClaimOutcome::Nothing(_)));
        let told = |arguments: &[&str]| {
            let Ended { out, err, .. } = run(&desk, 0, arguments);
            format!("{out}{err}")
        };
        assert!(told(&["queues", "show", "--transactions", "t"]).contains("by ann (audit)"));
        assert!(told(&["lanes", "show", "north", "--transactions", "t"]).contains("by bob"));
        assert!(told(&["jobs", "explain", &id]).contains("by bob; `lanes resume north --transactions t`"));
        run(&desk, 0, &["lanes", "resume", "north", "--transactions", "t"]);
        assert!(told(&["jobs", "explain", &id]).contains("by ann (audit); `queues resume --transactions t`"));
        run(&desk, 0, &["queues", "resume", "--transactions", "t"]);
        assert!(!told(&["queues", "show", "--transactions", "t"]).contains("ann"));
        claim(&desk, 0);
    }
}

/// What has not happened has no instant.
#[test]
fn c142_what_has_not_happened_is_not_shown_as_long_ago() {
    for provider in PROVIDERS {
        let desk = Desk::on(provider);
        let id = add(&desk, &[]);
        for arguments in [&["jobs", "show", &id][..], &["jobs", "list"], &["jobs", "show", &id, "--json"]] {
            let out = run(&desk, 0, arguments).out;
            assert!(!out.contains("1970-") && !out.contains("null,\"claimedAt\""), "{out}");
        }
        assert!(!run(&desk, 0, &["jobs", "show", &id]).out.contains("claimed"));
    }
}
