//! `orchestrator outbox`: real relays, real databases, whatever dies.

mod common;

#[path = "outbox/checker.rs"]
mod checker;
#[path = "outbox/examples.rs"]
mod examples;
#[path = "outbox/grid.rs"]
mod grid;
#[path = "outbox/relay.rs"]
mod relay;
#[path = "outbox/shop.rs"]
mod shop;
#[path = "outbox/stalled.rs"]
mod stalled;

use std::process::Child;
use std::time::{Duration, Instant};

use acta_core::store::JobFilter;
use acta_testkit::block_on;
use acta_testkit::postgres::{Database, Server};
use checker::{arrived, faults};
use common::Desk;
use relay::Relay;
use shop::{KINDS, Shop};

/// Waits until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < patience, "it never came to this: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A relay that dies between the ledger's commit and its own delete, again and again: nothing comes twice, not even what has been
/// finished and pruned in between.
#[cfg(feature = "failpoints")]
#[test]
fn c109_a_death_between_commit_and_delete_doubles_nothing() {
    const DEATHS: usize = 200;
    for kind in KINDS {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        let mut pruned = Vec::new();
        for number in 0..DEATHS.div_ceil(KINDS.len()) {
            shop.order(number, &format!("lane {number}"), true);
            let mut relay = Relay::start_with(&desk, &shop, "100ms", &[("ACTA_FAILPOINT", "outbox-delivered")]);
            assert!(!relay.child.wait().unwrap().success(), "it died");
            if number == DEATHS / 4 {
                // Everything so far is worked off, and forgotten but for its deliveries.
                pruned = work_off(&desk);
            }
        }
        assert!(shop.left() > 0, "the last one died before its delete");
        let _relay = Relay::start_with(&desk, &shop, "1s", &[]);
        until("all rows are gone", || shop.left() == 0);
        let mut all = pruned.clone();
        all.extend(arrived(&desk));
        assert!(pruned.len() > DEATHS / 8, "some were pruned");
        assert_eq!(faults(&shop.orders(), &all), Vec::<String>::new());
    }
}

/// Runs and prunes what is there; what it was.
#[cfg(feature = "failpoints")]
fn work_off(desk: &Desk) -> Vec<(usize, String)> {
    use acta_core::store::{Action, Operation};
    let done = arrived(desk);
    let store = desk.store();
    let page = block_on(store.jobs(JobFilter { limit: 1_000, ..JobFilter::default() })).unwrap();
    let ids = page.jobs.iter().map(|found| found.job.identity.id.clone()).collect();
    let namespace: acta_core::Namespace = "transactions/orders".parse().unwrap();
    let settings = acta_core::QueueSettings { retention: Some(acta_core::Span::from_millis(0)), ..Default::default() };
    block_on(store.define(acta_core::store::Define::Queue(namespace.clone(), settings))).unwrap();
    let cancel = Operation {
        namespace: namespace.clone(),
        ids,
        action: Action::Cancel { force: true },
        actor: None,
        reason: None,
    };
    block_on(store.operate(cancel)).unwrap();
    block_on(store.prune(namespace, 1_000)).unwrap();
    assert_eq!(arrived(desk), [], "pruned");
    done
}

/// A transaction that commits late is late, and not lost, and holds up nobody; nor does the shop ever wait for a relay.
fn a_late_commit_is_delivered_and_nobody_waits(kind: &str, sleep: &str, has_begun: &str, patience: &str) {
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, kind);
    let _relay = Relay::start(&desk, &shop);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            shop.run(&format!(
                "BEGIN;
                 INSERT INTO orders (number, lane) VALUES (1, 'a');
                 INSERT INTO acta_outbox (namespace, payload, lane) VALUES ('transactions/orders', '{{\"order\": 1}}', 'a');
                 {sleep};
                 COMMIT"
            ))
        });
        until("it has its number", || shop.run(has_begun)[0] == "1");
        for number in 2..10 {
            shop.order(number, if number % 2 == 0 { "a" } else { "b" }, true);
        }
        until("the others are there", || arrived(&desk).len() == 8);
        assert!(!late.is_finished(), "before the late one has committed");
        late.join().unwrap();
    });
    until("the late one is there", || arrived(&desk).len() == 9 && shop.left() == 0);
    // A relay that stands still with rows in hand holds no lock on them.
    let stopped = Relay::start(&desk, &shop);
    for number in 20..40 {
        shop.order(number, "c", true);
        if number == 30 {
            stopped.signal("-STOP");
        }
    }
    shop.run(&format!(
        "{patience}; UPDATE acta_outbox SET options = NULL; DELETE FROM acta_outbox WHERE payload = 'no such'"
    ));
    // It may have been stopped within a write to the ledger, which nobody else can do meanwhile.
    stopped.signal("-CONT");
    until("all is delivered", || shop.left() == 0);
    assert_eq!(arrived(&desk).len(), 29);
}

#[test]
fn c100_c110_a_late_commit_is_delivered_and_nobody_waits_on_postgres() {
    let has_begun = "SELECT last_value FROM acta_outbox_id_seq";
    a_late_commit_is_delivered_and_nobody_waits("postgres", "SELECT pg_sleep(5)", has_begun, "SET lock_timeout = '1s'");
}

#[test]
fn c100_c110_a_late_commit_is_delivered_and_nobody_waits_on_mysql() {
    let has_begun =
        "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND state = 'User sleep'";
    a_late_commit_is_delivered_and_nobody_waits("mysql", "DO sleep(5)", has_begun, "SET innodb_lock_wait_timeout = 1");
}

/// A row that the shop keeps locked holds up nobody, and goes when it is let go.
#[test]
fn c110_what_the_shop_has_locked_holds_up_nobody() {
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, "mysql");
    for (number, lane) in [(1, "a"), (2, "a"), (3, "b")] {
        shop.order(number, lane, true);
    }
    std::thread::scope(|scope| {
        let locked = scope.spawn(|| {
            shop.run("BEGIN; UPDATE acta_outbox SET options = '{}' WHERE id = 1; DO sleep(7); COMMIT");
        });
        let sleeping =
            "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND state = 'User sleep'";
        until("it is locked", || shop.run(sleeping)[0] == "1");
        let relay = Relay::start(&desk, &shop);
        until("what is not locked is gone", || arrived(&desk).len() == 3 && shop.left() == 1);
        let (before, begun) = (cpu_ms(&relay.child), Instant::now());
        std::thread::park_timeout(Duration::from_secs(1));
        let used = Duration::from_millis(cpu_ms(&relay.child) - before);
        assert!(used < begun.elapsed() / 3, "{used:?} of {:?}: it looks without a pause", begun.elapsed());
        assert!(!locked.is_finished(), "while it is locked");
        locked.join().unwrap();
        until("all are gone", || shop.left() == 0);
    });
    assert_eq!(arrived(&desk).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
}

/// A row that is no job is put aside at once, with its reason; its lane goes on. An operator mends it and lets it go, or removes it.
#[test]
fn c105_a_poisoned_row_is_put_aside_and_let_go() {
    for kind in KINDS {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        shop.stage(", lane, options", "'{\"order\": 1}', 'a', '{\"colour\": 1}'");
        shop.stage(", lane", "'no JSON', 'a'");
        shop.stage(", lane", "'{\"order\": 3}', 'a'");
        shop.stage(", lane", "'{\"order\": 4}', 'b'");
        let _relay = Relay::start(&desk, &shop);
        until("the good ones are there", || arrived(&desk).len() == 2 && shop.left() == 2);
        let url = shop.url();
        let source = ["--source", url.as_str()];
        let command = |words: &[&str]| desk.run(&[&["outbox"], words, &source[..]].concat());
        let status = command(&["status", "--json"]);
        assert!(status.out.contains("\"quarantined\":2"), "{status:?}");
        let listed = command(&["quarantine", "list"]);
        assert!(listed.out.contains("colour") && listed.out.contains("does not parse"), "{listed:?}");
        let refused = command(&["quarantine", "requeue", "--id", "1"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let dry = command(&["quarantine", "requeue", "--id", "1", "--dry-run"]);
        assert!(dry.code == Some(0) && shop.count("status = 3") == 2, "{dry:?}");
        shop.run("UPDATE acta_outbox SET options = NULL WHERE id = 1");
        let requeued = command(&["quarantine", "requeue", "--id", "1", "--yes"]);
        assert_eq!(requeued.code, Some(0), "{requeued:?}");
        until("the mended one is there", || arrived(&desk).len() == 3 && shop.left() == 1);
        let discarded = command(&["quarantine", "discard", "--lane", "a", "--yes", "--reason", "a test order"]);
        assert_eq!((discarded.code, shop.left()), (Some(0), 0), "{discarded:?}");
        let kept = command(&["quarantine", "list", "--discarded", "--json"]);
        for part in ["\"id\":2", "no JSON", "does not parse", "\"discardedBy\":\"operator\"", "a test order"] {
            assert!(kept.out.contains(part), "{part}: {kept:?}");
        }
        assert_eq!(kept.out.lines().count(), 1, "the mended one is not among them: {kept:?}");
        assert_eq!(command(&["quarantine", "discard", "--yes"]).code, Some(6));
        assert_eq!(arrived(&desk).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4, 1]);
    }
}

/// What the ledger refuses holds its lane until it is mended, and no other lane.
#[test]
fn a_refused_row_holds_its_lane_alone() {
    for kind in KINDS {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        shop.stage(", name, lane", "'{\"order\": 0}', 'Ship', 'z'");
        let _relay = Relay::start(&desk, &shop);
        until("the name is known", || arrived(&desk).len() == 1);
        shop.stage(", name, lane", "'{\"order\": 1}', 'ship', 'a'");
        for number in 2..6 {
            shop.stage(
                ", name, lane",
                &format!("'{{\"order\": {number}}}', 'Ship', '{}'", if number == 4 { "b" } else { "a" }),
            );
        }
        until("the other lane flows", || arrived(&desk).len() == 2);
        until("it is refused and what is behind it waits", || {
            shop.count("status = 1") == 1 && shop.count("status = 2") == 3
        });
        assert_eq!(shop.run("SELECT fault FROM acta_outbox WHERE status = 1").len(), 1);
        shop.run("UPDATE acta_outbox SET name = 'Ship' WHERE status = 1");
        until("all are there", || shop.left() == 0);
        assert_eq!(arrived(&desk).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 4, 1, 2, 3, 5]);
    }
}

/// While a batch is on its way the next one is looked at: what stands in it behind a row that is refused then does not overtake it.
#[test]
fn what_was_looked_at_meanwhile_waits_behind_a_refused_row() {
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, "sqlite");
    let mut relay = Relay::start(&desk, &shop);
    shop.stage(", name, lane", "'{\"order\": 0}', 'Ship', 'z'");
    until("the name is known", || shop.left() == 0);
    relay.kill();
    shop.stage(", name, lane", "'{\"order\": 1}', 'ship', 'a'");
    // As many as one look takes.
    shop.run(&format!(
        "INSERT INTO acta_outbox (namespace, payload, lane)
         WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {})
         SELECT 'transactions/orders', '{{\"order\": 9}}', 'b' FROM s",
        acta_core::relay::MOST_TAKEN
    ));
    shop.stage(", name, lane", "'{\"order\": 2}', 'Ship', 'a'");
    let _relay = Relay::start(&desk, &shop);
    until("it is refused and what is behind it waits", || {
        shop.count("status = 1") == 1 && shop.count("status = 2") == 1 && shop.left() == 2
    });
    shop.run("UPDATE acta_outbox SET name = 'Ship' WHERE status = 1");
    until("all are there", || shop.left() == 0);
    let mut numbers: Vec<usize> = arrived(&desk).iter().map(|(number, _)| *number).collect();
    numbers.retain(|number| *number != 9);
    assert_eq!(numbers, [0, 1, 2]);
}

/// What is parked behind a head that somebody deletes by hand comes all the same.
#[test]
fn a_head_deleted_by_hand_strands_nobody() {
    for kind in KINDS {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        shop.stage(", name, lane", "'{\"order\": 0}', 'Ship', 'z'");
        let _relay = Relay::start(&desk, &shop);
        until("the name is known", || arrived(&desk).len() == 1);
        shop.stage(", name, lane", "'{\"order\": 1}', 'ship', 'a'");
        until("it is refused", || shop.count("status = 1") == 1);
        shop.stage(", name, lane", "'{\"order\": 2}', 'Ship', 'a'");
        until("it waits", || shop.count("status = 1") == 1 && shop.count("status = 2") == 1);
        shop.run("DELETE FROM acta_outbox WHERE status = 1");
        until("it has come", || arrived(&desk).len() == 2 && shop.left() == 0);
    }
}

/// A ledger out of reach costs next to nothing, and no row its good name.
#[test]
fn a_ledger_that_is_down_is_waited_for() {
    use acta_testkit::postgres::Stop;
    let server = Server::start(&[]);
    let database = Database::new(&server.url("postgres"), None);
    let url = database.url();
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, "sqlite");
    let environment = [("TS_QUEUE_PROVIDER", "postgres"), ("DATABASE_URL", url.as_str())];
    let relay = Relay::start_with(&desk, &shop, "2s", &environment);
    shop.order(1, "a", true);
    until("the first one is there", || shop.left() == 0);
    server.stop(Stop::Immediate);
    for number in 2..50 {
        shop.order(number, if number % 2 == 0 { "a" } else { "b" }, true);
    }
    let (before, down) =
        (cpu_ms(&relay.child), Duration::from_secs(if std::env::var_os("ACTA_LONG").is_some() { 60 } else { 6 }));
    std::thread::park_timeout(down);
    let used = Duration::from_millis(cpu_ms(&relay.child) - before);
    assert!(used < down / 10, "{used:?} of {down:?}");
    assert_eq!((shop.count("status = 3"), shop.count("refusals > 0"), shop.left()), (0, 0, 48));
    server.resume();
    until("all are there", || shop.left() == 0);
    let store = block_on(url.parse::<acta_store::Address>().unwrap().open(std::sync::Arc::new(acta_core::SystemClock)))
        .unwrap();
    let page = block_on(store.jobs(JobFilter { limit: 100, ..JobFilter::default() })).unwrap();
    assert_eq!(page.jobs.len(), 49);
}

/// What a process has used of the processors so far.
fn cpu_ms(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // In hundredths of a second, as everywhere on Linux.
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

/// A queue whose name differs by case alone is refused row by row, and holds up no other queue.
#[test]
fn c070_a_queue_written_otherwise_holds_up_no_other() {
    let start = |kind| {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        shop.order(0, "a", true);
        let relay = Relay::start(&desk, &shop);
        until("the queue is known", || arrived(&desk).len() == 1);
        for number in 1..3 {
            // What is no job there is put aside at once.
            for payload in [number.to_string(), "oops".into()] {
                let columns = "(namespace, payload, lane)";
                let values = format!("('transactions/ORDERS', '{payload}', 'a')");
                shop.run(&format!("INSERT INTO acta_outbox {columns} VALUES {values}"));
            }
            shop.order(number, "a", true);
        }
        (desk, shop, relay)
    };
    let all = KINDS.map(start);
    for (desk, shop, _relay) in &all {
        until("the others are there", || arrived(desk).len() == 3);
        until("what is no job is put aside", || shop.count("status = 3 AND fault LIKE 'malformed%'") == 2);
    }
    for (desk, shop, _relay) in &all {
        let refused = "status = 3 AND fault LIKE 'refused 5 times%only by case%'";
        until("each of these is refused in turn, and put aside", || shop.count(refused) == 2);
        assert_eq!(arrived(desk).len(), 3);
    }
}
