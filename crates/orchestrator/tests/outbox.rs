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
        let child = desk
            .command(&["outbox", "relay", "--source", &shop.url(), "--hold", "2s"])
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
        let (_, killed) = killer.join().unwrap();
        assert!(killed > 0, "somebody died");
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
