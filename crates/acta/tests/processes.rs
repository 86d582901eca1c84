//! Worker processes that die at any moment, while they drain the lanes of one ledger.
//!
//! The handlers write down what they do; the checker reads that, and what the ledger says, and decides.

#![expect(clippy::disallowed_methods, reason = "what another process does is looked for now and then")]

#[path = "processes/checker.rs"]
mod checker;
#[path = "processes/crew.rs"]
mod crew;
#[path = "processes/record.rs"]
mod record;

use std::time::Duration;

use acta_testkit::postgres::{Database, Server, Stop};
use crew::{Crew, Shape};

/// The role of a worker process; an ordinary run of this test does nothing.
#[test]
fn worker() {
    crew::work_if_told();
}

fn is_long() -> bool {
    std::env::var_os("ACTA_LONG").is_some()
}

/// How many jobs, in how many lanes.
fn load() -> Shape {
    let (jobs, lanes) = if is_long() { (20_000, 500) } else { (2_000, 50) };
    Shape { jobs, lanes }
}

#[test]
fn workers_killed_each_second_lose_double_and_reorder_nothing_on_postgres() {
    let database = Database::new(Server::shared_url(), None);
    let mut crew = Crew::new(&database.url(), load());
    crew.start(3);
    let kills = crew.kill_until_drained(Duration::from_secs(1));
    assert!(kills > 0, "it was drained before anybody was killed");
    crew.finish();
}

#[test]
fn workers_killed_each_second_lose_double_and_reorder_nothing_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("acta.db").display());
    let mut crew = Crew::new(&url, load());
    crew.start(3);
    let kills = crew.kill_until_drained(Duration::from_secs(1));
    assert!(kills > 0, "it was drained before anybody was killed");
    crew.finish();
}

#[test]
fn restarts_of_the_server_need_no_restart_of_a_worker() {
    let server = Server::start(&[]);
    let url = server.url("postgres");
    let mut crew = Crew::new(&url, load());
    crew.start(3);
    for how in [Stop::Fast, Stop::Immediate, Stop::Immediate] {
        crew.wait_for_ends(load().jobs / 10);
        assert!(!crew.is_drained(), "the server is stopped under load");
        server.stop(how);
        // Long enough for every worker to have met a server that is not there.
        std::thread::sleep(Duration::from_millis(300));
        server.resume();
    }
    crew.wait_until_drained();
    assert_eq!(crew.alive(), 3, "no worker ends because of the server");
    crew.finish();
}

#[test]
fn workers_asked_to_end_under_load_end_in_time_and_leave_nothing_half_done() {
    let database = Database::new(Server::shared_url(), None);
    let mut crew = Crew::new(&database.url(), load());
    crew.start(2);
    for _ in 0..4 {
        crew.wait_for_ends(load().jobs / 10);
        crew.start(1);
        let took = crew.terminate_one();
        assert!(took < Duration::from_secs(10), "it took {took:?}");
    }
    crew.wait_until_drained();
    crew.finish();
}
