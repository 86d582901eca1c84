//! Every database with every ledger, whatever dies.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use acta_testkit::{mariadb, postgres};

use crate::checker::{arrived, faults};
use crate::common::Desk;
use crate::relay::Relay;
use crate::shop::Shop;

const PRODUCERS: usize = 8;

/// Tells the killer that it is over.
struct Over<'d>(&'d AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A server that is restarted under load.
enum Server {
    Postgres(postgres::Server),
    Mariadb(mariadb::Server),
}

impl Server {
    fn restart(&self) {
        match self {
            Self::Postgres(server) => {
                server.stop(postgres::Stop::Immediate);
                server.resume();
            }
            Self::Mariadb(server) => {
                server.kill();
                server.resume();
            }
        }
    }
}

/// A ledger and a shop, each on a server of its own if it is on a server.
fn places(kind: &str, ledger: &'static str) -> (Desk, Shop, Vec<Server>) {
    // What the machine has written need not survive the machine.
    let postgres = || postgres::Server::start(&["fsync=off"]);
    let mut servers = Vec::new();
    let desk = if ledger == "postgres" {
        let server = postgres();
        let desk = Desk::on_server(&server.url("postgres"));
        servers.push(Server::Postgres(server));
        desk
    } else {
        Desk::on(ledger)
    };
    let shop = match kind {
        "postgres" => {
            let server = postgres();
            let database = postgres::Database::new(&server.url("postgres"), None);
            servers.push(Server::Postgres(server));
            Shop::Postgres(database).open(&desk)
        }
        "mysql" => {
            let server = mariadb::Server::start(&[]);
            let database = mariadb::Database::new(&server.url("mysql"));
            servers.push(Server::Mariadb(server));
            Shop::Mysql(database).open(&desk)
        }
        kind => Shop::new(&desk, kind),
    };
    (desk, shop, servers)
}

/// Eight producers, two relays of which one dies every half second, servers that crash twice: what was committed arrives, once, each
/// lane in its order.
fn orders_arrive(kind: &str, ledger: &'static str) {
    let long = std::env::var_os("ACTA_LONG").is_some();
    let (total, lanes) = if long { (10_000, 200) } else { (500, 40) };
    let (desk, shop, servers) = places(kind, ledger);
    let began = Instant::now();
    let mut relays = [Relay::start(&desk, &shop), Relay::start(&desk, &shop)];
    let (done, staged) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (desk, shop, done, staged) = (&desk, &shop, &done, &staged);
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                scope.spawn(move || {
                    // A lane is one producer's, so that its orders are staged one behind another.
                    for number in (producer..total).step_by(PRODUCERS) {
                        let lane = producer + PRODUCERS * ((number / PRODUCERS) % (lanes / PRODUCERS));
                        shop.order(number, &format!("lane {lane}"), !number.is_multiple_of(11));
                        staged.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
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
        let servers = &servers;
        let crashes = scope.spawn(move || {
            for part in [total / 3, 2 * total / 3] {
                while staged.load(Ordering::SeqCst) < part && !done.load(Ordering::SeqCst) {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                assert!(staged.load(Ordering::SeqCst) < total, "a server crashes under load");
                servers.iter().for_each(Server::restart);
            }
        });
        for producer in producers {
            producer.join().unwrap();
        }
        crashes.join().unwrap();
        let patience = Instant::now() + Duration::from_secs(if long { 600 } else { 60 });
        while shop.left() > 0 {
            assert!(Instant::now() < patience, "{} rows are still there", shop.left());
            std::thread::park_timeout(Duration::from_millis(100));
        }
        drop(over);
        let (_, deaths) = killer.join().unwrap();
        assert!(deaths > 0, "somebody died");
        println!("{kind} to {ledger}: {total} orders in {:?}, {deaths} deaths of relays", began.elapsed());
    });
    let (committed, arrived) = (shop.orders(), arrived(&desk));
    assert_eq!(committed.len(), (0..total).filter(|number| !number.is_multiple_of(11)).count());
    assert_eq!(faults(&committed, &arrived), Vec::<String>::new());
    // A database goes before its server.
    drop((desk, shop));
    drop(servers);
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

#[test]
fn orders_arrive_from_mysql_in_sqlite() {
    orders_arrive("mysql", "sqlite");
}

#[test]
fn orders_arrive_from_mysql_in_files() {
    orders_arrive("mysql", "file");
}

#[test]
fn orders_arrive_from_mysql_in_postgres() {
    orders_arrive("mysql", "postgres");
}
