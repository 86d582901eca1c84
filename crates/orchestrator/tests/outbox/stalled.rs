//! A relay that stands still with rows in hand while others decide about them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::checker::arrived;
use crate::common::Desk;
use crate::relay::Relay;
use crate::shop::Shop;
use crate::until;

/// It has the rows and is about to write them into the ledger; when it wakes, two were put aside, of which one is gone for good, one was
/// mended and has arrived, and one has arrived as it was.
fn a_stalled_relay_delivers_nothing(kind: &str) {
    let desk = Desk::on("sqlite");
    let shop = Shop::new(&desk, kind);
    let stalled = Relay::start(&desk, &shop);
    shop.order(0, "a", true);
    until("the ledger is there", || shop.left() == 0);
    let ledger = rusqlite::Connection::open(desk.path().join("root/acta.db")).unwrap();
    ledger.busy_timeout(Duration::from_secs(10)).unwrap();
    ledger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let row = |number: usize| format!("('transactions/orders', '{{\"order\": {number}}}', 'lane {number}')");
    let rows: Vec<String> = (1..5).map(row).collect();
    shop.run(&format!("INSERT INTO acta_outbox (namespace, payload, lane) VALUES {}", rows.join(", ")));
    // Time for a look and for the step from the one database to the other; what it tests holds wherever it stands still.
    std::thread::park_timeout(Duration::from_millis(500));
    stalled.signal("-STOP");
    ledger.execute_batch("ROLLBACK").unwrap();
    shop.run("UPDATE acta_outbox SET payload = 'no JSON' WHERE lane IN ('lane 1', 'lane 2', 'lane 3')");
    let mut other = Relay::start(&desk, &shop);
    let numbers = || arrived(&desk).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    until("its time is over", || shop.count("status = 3") == 3 && numbers() == [0, 4]);
    let url = shop.url();
    let release = |verb: &str, lane: &str| {
        let ended = desk.run(&["outbox", "quarantine", verb, "--source", &url, "--lane", lane, "--yes"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    release("discard", "lane 2");
    shop.run("UPDATE acta_outbox SET payload = '{\"order\": 30}' WHERE lane = 'lane 3'");
    release("requeue", "lane 3");
    until("the mended one is there", || shop.left() == 1);
    other.kill();
    stalled.signal("-CONT");
    shop.order(5, "a", true);
    until("it works again", || numbers().contains(&5));
    assert_eq!(numbers().into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([0, 4, 5, 30]));
    assert_eq!((numbers().len(), shop.left(), shop.count("status = 3")), (4, 1, 1));
}

#[test]
fn a_stalled_relay_delivers_nothing_from_sqlite() {
    a_stalled_relay_delivers_nothing("sqlite");
}

#[test]
fn a_stalled_relay_delivers_nothing_from_postgres() {
    a_stalled_relay_delivers_nothing("postgres");
}

#[test]
fn a_stalled_relay_delivers_nothing_from_mysql() {
    a_stalled_relay_delivers_nothing("mysql");
}
