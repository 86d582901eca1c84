//! `orchestrator outbox`: real relays, real databases, whatever dies.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use acta_core::store::JobFilter;
use acta_testkit::block_on;
use acta_testkit::postgres::{Database, Server, sql};
use common::Desk;

/// The shop's own database, with its orders and its outbox.
enum Shop {
    Sqlite(PathBuf),
    Postgres(Database),
}

const ORDERS: &str = "CREATE TABLE orders (number bigint PRIMARY KEY, lane text NOT NULL)";

impl Shop {
    fn new(desk: &Desk, kind: &str) -> Self {
        let ddl = desk.run(&["outbox", "ddl", "--for", kind]);
        assert_eq!(ddl.code, Some(0), "{ddl:?}");
        let script = format!("{ORDERS};\n{}", ddl.out);
        if kind == "sqlite" {
            let path = desk.path().join("shop.db");
            let db = rusqlite::Connection::open(&path).unwrap();
            db.execute_batch(&format!("PRAGMA journal_mode = wal; {script}")).unwrap();
            return Self::Sqlite(path);
        }
        let database = Database::new(Server::shared_url(), None);
        sql(&database.url(), &script).unwrap();
        Self::Postgres(database)
    }

    fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(database) => database.url(),
        }
    }

    /// Runs statements in one transaction; the first column of what they answer.
    fn run(&self, script: &str) -> Vec<String> {
        match self {
            Self::Sqlite(path) => {
                let db = rusqlite::Connection::open(path).unwrap();
                db.busy_timeout(Duration::from_secs(30)).unwrap();
                if !script.starts_with("SELECT") {
                    db.execute_batch(script).unwrap();
                    return Vec::new();
                }
                let mut statement = db.prepare(script).unwrap();
                let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
                rows.map(|value| match value.unwrap() {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                })
                .collect()
            }
            Self::Postgres(database) => sql(&database.url(), script).unwrap(),
        }
    }

    /// Saves an order with its job, in one transaction that takes its time; or thinks better of it.
    fn order(&self, number: usize, lane: &str, commits: bool) {
        let end = if commits { "COMMIT" } else { "ROLLBACK" };
        let begin = if matches!(self, Self::Sqlite(_)) { "BEGIN IMMEDIATE" } else { "BEGIN" };
        let slow = match self {
            Self::Postgres(_) if number.is_multiple_of(37) => "SELECT pg_sleep(0.2);",
            _ => "",
        };
        self.run(&format!(
            "{begin};
             INSERT INTO orders (number, lane) VALUES ({number}, '{lane}');
             INSERT INTO acta_outbox (namespace, name, payload, lane)
             VALUES ('transactions/orders', 'ship', '{{\"order\": {number}}}', '{lane}');
             {slow}
             {end};"
        ));
    }

    fn orders(&self) -> Vec<usize> {
        self.run("SELECT number FROM orders ORDER BY number").iter().map(|number| number.parse().unwrap()).collect()
    }

    fn left(&self) -> u64 {
        self.run("SELECT count(*) FROM acta_outbox")[0].parse().unwrap()
    }
}

/// A relay that is killed and begun again.
struct Relay {
    child: Child,
}

impl Relay {
    fn start(desk: &Desk, shop: &Shop) -> Self {
        Self::start_with(desk, shop, "2s", &[])
    }

    fn start_with(desk: &Desk, shop: &Shop, hold: &str, environment: &[(&str, &str)]) -> Self {
        let child = desk
            .command(&["outbox", "relay", "--source", &shop.url(), "--hold", hold])
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the killer that it is over.
struct Over<'d>(&'d AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What has arrived: the orders, in the order of their places, each with its lane.
fn arrived(desk: &Desk) -> Vec<(usize, String)> {
    let store = desk.store();
    let mut filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    let mut jobs = Vec::new();
    loop {
        let page = block_on(store.jobs(filter.clone())).unwrap();
        jobs.extend(page.jobs);
        match page.next {
            Some(next) => filter.after_row = Some(next),
            None => break,
        }
    }
    jobs.sort_by_key(|found| found.job.standing.place);
    let number = |payload: &str| serde_json::from_str::<serde_json::Value>(payload).unwrap()["order"].as_u64().unwrap();
    jobs.iter()
        .map(|found| {
            let identity = &found.job.identity;
            (usize::try_from(number(identity.payload.as_str())).unwrap(), identity.lane.clone().unwrap().to_string())
        })
        .collect()
}

/// What is wrong with what has arrived: orders that are lost, that were never committed, that came twice, lanes out of order.
fn faults(committed: &[usize], arrived: &[(usize, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    let wanted: BTreeSet<usize> = committed.iter().copied().collect();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, lane) in arrived {
        *counts.entry(*number).or_default() += 1;
        if let Some(before) = last.insert(lane, *number)
            && before > *number
        {
            faults.push(format!("{lane}: {number} behind {before}"));
        }
    }
    faults
        .extend(wanted.iter().filter(|number| !counts.contains_key(number)).map(|number| format!("{number} is lost")));
    faults.extend(
        counts.iter().filter(|(_, count)| **count > 1).map(|(number, count)| format!("{number} came {count} times")),
    );
    faults.extend(
        counts.keys().filter(|number| !wanted.contains(number)).map(|number| format!("{number} was never committed")),
    );
    faults
}

#[test]
fn the_checker_finds_a_loss_a_double_a_swap_and_an_invention() {
    let job = |number: usize| (number, format!("lane {}", number % 2));
    let sound: Vec<(usize, String)> = (0..6).map(job).collect();
    let committed: Vec<usize> = (0..6).collect();
    assert_eq!(faults(&committed, &sound), Vec::<String>::new());
    let mut lost = sound.clone();
    lost.remove(3);
    assert_eq!(faults(&committed, &lost), ["3 is lost"]);
    let mut double = sound.clone();
    double.push(job(5));
    assert_eq!(faults(&committed, &double), ["5 came 2 times"]);
    let mut swapped = sound.clone();
    swapped.swap(0, 2);
    assert_eq!(faults(&committed, &swapped), ["lane 0: 0 behind 2"]);
    let mut invented = sound;
    invented.push(job(8));
    assert_eq!(faults(&committed, &invented), ["8 was never committed"]);
}

/// Eight producers, two relays that die every second: what was committed arrives, once, each lane in its order.
fn orders_arrive(kind: &str, ledger: &'static str) {
    const PRODUCERS: usize = 8;
    let long = std::env::var_os("ACTA_LONG").is_some();
    let (total, lanes) = if long { (10_000, 200) } else { (500, 40) };
    let desk = Desk::on(ledger);
    let shop = Shop::new(&desk, kind);
    let mut relays = [Relay::start(&desk, &shop), Relay::start(&desk, &shop)];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let shop = &shop;
                scope.spawn(move || {
                    // A lane is one producer's, so that its orders are staged one behind another.
                    for number in (producer..total).step_by(PRODUCERS) {
                        let lane =
                            format!("lane {}", producer + PRODUCERS * ((number / PRODUCERS) % (lanes / PRODUCERS)));
                        shop.order(number, &lane, !number.is_multiple_of(11));
                    }
                })
            })
            .collect();
        let (desk, shop, done) = (&desk, &shop, &done);
        // Where the test fails, too.
        let over = Over(done);
        let killer = scope.spawn(move || {
            let mut next = 0;
            while !done.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(500));
                relays[next % 2].kill();
                relays[next % 2] = Relay::start(desk, shop);
                next += 1;
            }
            (relays, next)
        });
        for producer in producers {
            producer.join().unwrap();
        }
        let patience = Instant::now() + Duration::from_secs(if long { 600 } else { 60 });
        while shop.left() > 0 {
            assert!(Instant::now() < patience, "{} rows are still there", shop.left());
            std::thread::park_timeout(Duration::from_millis(100));
        }
        drop(over);
        let (_, deaths) = killer.join().unwrap();
        assert!(deaths > 0, "somebody died");
    });
    let (committed, arrived) = (shop.orders(), arrived(&desk));
    assert_eq!(committed.len(), (0..total).filter(|number| !number.is_multiple_of(11)).count());
    assert_eq!(faults(&committed, &arrived), Vec::<String>::new());
}

#[test]
fn orders_arrive_from_sqlite_in_sqlite() {
    orders_arrive("sqlite", "sqlite");
}

#[test]
fn orders_arrive_from_sqlite_in_files() {
    orders_arrive("sqlite", "file");
}

#[test]
fn orders_arrive_from_sqlite_in_postgres() {
    orders_arrive("sqlite", "postgres");
}

#[test]
fn orders_arrive_from_postgres_in_sqlite() {
    orders_arrive("postgres", "sqlite");
}

#[test]
fn orders_arrive_from_postgres_in_files() {
    orders_arrive("postgres", "file");
}

#[test]
fn orders_arrive_from_postgres_in_postgres() {
    orders_arrive("postgres", "postgres");
}

/// Waits until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < patience, "it never came to this: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// One row, as an application writes it.
fn stage(shop: &Shop, columns: &str, values: &str) {
    shop.run(&format!(
        "INSERT INTO acta_outbox (namespace, payload{columns}) VALUES ('transactions/orders', {values})"
    ));
}

fn count(shop: &Shop, condition: &str) -> u64 {
    shop.run(&format!("SELECT count(*) FROM acta_outbox WHERE {condition}"))[0].parse().unwrap()
}

/// A relay that dies between the ledger's commit and its own delete, again and again: nothing comes twice, not even what has been
/// finished and pruned in between.
#[cfg(feature = "failpoints")]
#[test]
fn c109_a_death_between_commit_and_delete_doubles_nothing() {
    const DEATHS: usize = 200;
    for kind in ["sqlite", "postgres"] {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        let mut pruned = Vec::new();
        for number in 0..DEATHS / 2 {
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
#[test]
fn c100_c110_a_late_commit_is_delivered_and_nobody_waits() {
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, "postgres");
    let _relay = Relay::start(&desk, &shop);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            shop.run(
                "BEGIN;
                 INSERT INTO orders (number, lane) VALUES (1, 'a');
                 INSERT INTO acta_outbox (namespace, payload, lane) VALUES ('transactions/orders', '{\"order\": 1}', 'a');
                 SELECT pg_sleep(5);
                 COMMIT",
            )
        });
        until("it has its number", || shop.run("SELECT last_value FROM acta_outbox_id_seq")[0] == "1");
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
    let pid = stopped.child.id().to_string();
    for number in 20..40 {
        shop.order(number, "c", true);
        if number == 30 {
            std::process::Command::new("kill").args(["-STOP", &pid]).status().unwrap();
        }
    }
    shop.run("SET lock_timeout = '1s'; UPDATE acta_outbox SET options = NULL; DELETE FROM acta_outbox WHERE payload = 'no such'");
    until("all is delivered", || shop.left() == 0);
    assert_eq!(arrived(&desk).len(), 29);
}

/// A row that is no job is put aside at once, with its reason; its lane goes on. An operator mends it and lets it go, or removes it.
#[test]
fn c105_a_poisoned_row_is_put_aside_and_let_go() {
    for kind in ["sqlite", "postgres"] {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        stage(&shop, ", lane, options", "'{\"order\": 1}', 'a', '{\"colour\": 1}'");
        stage(&shop, ", lane", "'no JSON', 'a'");
        stage(&shop, ", lane", "'{\"order\": 3}', 'a'");
        stage(&shop, ", lane", "'{\"order\": 4}', 'b'");
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
        assert!(dry.code == Some(0) && count(&shop, "status = 3") == 2, "{dry:?}");
        shop.run("UPDATE acta_outbox SET options = NULL WHERE id = 1");
        let requeued = command(&["quarantine", "requeue", "--id", "1", "--yes"]);
        assert_eq!(requeued.code, Some(0), "{requeued:?}");
        until("the mended one is there", || arrived(&desk).len() == 3 && shop.left() == 1);
        let discarded = command(&["quarantine", "discard", "--lane", "a", "--yes"]);
        assert_eq!((discarded.code, shop.left()), (Some(0), 0), "{discarded:?}");
        assert_eq!(command(&["quarantine", "discard", "--yes"]).code, Some(6));
        assert_eq!(arrived(&desk).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4, 1]);
    }
}

/// What the ledger refuses holds its lane until it is mended, and no other lane.
#[test]
fn a_refused_row_holds_its_lane_alone() {
    for kind in ["sqlite", "postgres"] {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        stage(&shop, ", name, lane", "'{\"order\": 0}', 'Ship', 'z'");
        let _relay = Relay::start(&desk, &shop);
        until("the name is known", || arrived(&desk).len() == 1);
        stage(&shop, ", name, lane", "'{\"order\": 1}', 'ship', 'a'");
        for number in 2..6 {
            stage(
                &shop,
                ", name, lane",
                &format!("'{{\"order\": {number}}}', 'Ship', '{}'", if number == 4 { "b" } else { "a" }),
            );
        }
        until("the other lane flows", || arrived(&desk).len() == 2);
        until("it is refused and what is behind it waits", || {
            count(&shop, "status = 4") == 1 && count(&shop, "status = 2") == 3
        });
        assert_eq!(shop.run("SELECT fault FROM acta_outbox WHERE status = 4").len(), 1);
        shop.run("UPDATE acta_outbox SET name = 'Ship' WHERE status = 4");
        until("all are there", || shop.left() == 0);
        assert_eq!(arrived(&desk).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 4, 1, 2, 3, 5]);
    }
}

/// What is parked behind a head that somebody deletes by hand comes all the same.
#[test]
fn a_head_deleted_by_hand_strands_nobody() {
    for kind in ["sqlite", "postgres"] {
        let desk = Desk::on("sqlite");
        let shop = Shop::new(&desk, kind);
        stage(&shop, ", name, lane", "'{\"order\": 0}', 'Ship', 'z'");
        let _relay = Relay::start(&desk, &shop);
        until("the name is known", || arrived(&desk).len() == 1);
        stage(&shop, ", name, lane", "'{\"order\": 1}', 'ship', 'a'");
        stage(&shop, ", name, lane", "'{\"order\": 2}', 'Ship', 'a'");
        until("it waits", || count(&shop, "status = 4") == 1 && count(&shop, "status = 2") == 1);
        shop.run("DELETE FROM acta_outbox WHERE status = 4");
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
    assert_eq!((count(&shop, "status = 3"), count(&shop, "refusals > 0"), shop.left()), (0, 0, 48));
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
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, "sqlite");
    shop.order(0, "a", true);
    let _relay = Relay::start(&desk, &shop);
    until("the queue is known", || arrived(&desk).len() == 1);
    for number in 1..4 {
        shop.run(&format!("INSERT INTO acta_outbox (namespace, payload) VALUES ('transactions/ORDERS', '{number}')"));
        shop.order(number, "a", true);
    }
    until("the others are there", || arrived(&desk).len() == 4);
    until("each of these is refused", || count(&shop, "status = 4 AND fault LIKE '%only by case%'") == 3);
}
