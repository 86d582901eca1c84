//! How SQLite goes about each statement, written down: a full scan of a table fails the test.

use std::fmt::Write;
use std::path::Path;

use super::connection::{Db, Statement, Synchronous, find_of, statement, update_of};
use super::migrate;

/// The statements of claims, settles, recover and prune, and whatever else reads or writes jobs.
const STATEMENTS: [Statement; 70] = [
    statement!("add_count"),
    statement!("add_foreign"),
    statement!("add_lane"),
    statement!("add_minute"),
    statement!("add_name"),
    statement!("add_namespace"),
    statement!("any_head_named"),
    statement!("candidate"),
    statement!("candidate_keys"),
    statement!("candidates"),
    statement!("counts"),
    statement!("delete_detail"),
    statement!("delete_events"),
    statement!("delete_foreign"),
    statement!("delete_job"),
    statement!("delete_signals"),
    statement!("delete_standing"),
    statement!("delete_steps"),
    statement!("detail"),
    statement!("due"),
    statement!("expired"),
    statement!("find"),
    statement!("find_foreign"),
    statement!("first_due"),
    statement!("first_due_named"),
    statement!("first_lapse"),
    statement!("first_lapse_named"),
    statement!("heads"),
    statement!("held"),
    statement!("history"),
    statement!("hold_last_number"),
    statement!("identity"),
    statement!("import_standing"),
    statement!("insert_job"),
    statement!("insert_standing"),
    statement!("key"),
    statement!("lane"),
    statement!("lane_head"),
    statement!("lane_next"),
    statement!("lane_numbered"),
    statement!("lanes"),
    statement!("lapsed"),
    statement!("last_hold"),
    statement!("last_number"),
    statement!("locate"),
    statement!("locate_foreign"),
    statement!("minutes"),
    statement!("name"),
    statement!("namespace"),
    statement!("namespace_numbered"),
    statement!("next_ready_name"),
    statement!("pop_signal"),
    statement!("prunable"),
    statement!("push_signal"),
    statement!("record"),
    statement!("remove_expired_keys"),
    statement!("remove_key"),
    statement!("remove_lane"),
    statement!("remove_minutes"),
    statement!("remove_worker"),
    statement!("remove_workers"),
    statement!("save_key"),
    statement!("save_lane"),
    statement!("save_worker"),
    statement!("standing"),
    statement!("state"),
    statement!("steps"),
    statement!("take_count"),
    statement!("worker"),
    statement!("workers"),
];

/// Statements that may look at a whole table, and why: it is small, it is a page of the newest, or all is what is wanted.
const MAY_SCAN: [&str; 24] = [
    "list",       // pages of the newest jobs, by the primary key backwards
    "namespaces", // one row a queue
    "is_used",    // the first row, if there is one
    "openness",   // one row in all
    "newest_version",
    "main_file", // the names of a connection's files
    "save_openness",
    "names",
    "export_jobs", // a copy takes all of a namespace
    "export_lanes",
    "export_keys",
    "export_events",
    "export_signals",
    "export_steps",
    "export_foreign",
    "save_namespace_paused", // by primary key, listed here since they are not in the golden file
    "save_settings",
    "save_definition",
    "save_detail",
    "save_last_number",
    "save_step",
    "vacuum_into", // SQLite's own words, which have no plan
    "integrity_check",
    "journal_mode",
];

/// Statements that sort what they have found: a bounded number of heads, the steps of one job, the workers of
/// a queue.
const MAY_SORT: [&str; 3] = ["heads", "steps", "workers"];

/// Lines of a plan that scan no table of ours.
const SMALL: [&str; 2] = ["SCAN CONSTANT ROW", "SCAN (subquery"];

fn plan(db: &Db, sql: &str) -> String {
    let mut explain = db.raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let count = explain.parameter_count();
    let lines = explain
        .query_map(rusqlite::params_from_iter(vec![None::<i64>; count]), |row| row.get::<_, String>(3))
        .unwrap()
        .collect::<Result<Vec<String>, _>>()
        .unwrap();
    lines.join("\n")
}

fn ledger() -> (tempfile::TempDir, Db) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&folder.path().join("acta.db"), Synchronous::Full, true).unwrap();
    migrate::create_or_accept(&db).unwrap();
    (folder, db)
}

#[test]
fn no_statement_scans_a_table() {
    let (_folder, db) = ledger();
    let mut golden = String::new();
    for Statement { name, sql } in STATEMENTS {
        let plan = plan(&db, sql);
        let scans = |line: &str| line.starts_with("SCAN") && !SMALL.iter().any(|small| line.starts_with(small));
        assert!(!plan.lines().any(scans), "{name} scans:\n{plan}");
        let sorts = plan.contains("TEMP B-TREE") && !MAY_SORT.contains(&name);
        assert!(!sorts, "{name} sorts:\n{plan}");
        writeln!(golden, "{name}\n{}", indented(&plan)).unwrap();
    }
    for (name, sql) in [("save, of 16 jobs", update_of(0b1111, 16)), ("find_many, of 4 jobs", find_of(4))] {
        writeln!(golden, "{name}\n{}", indented(&plan(&db, &sql))).unwrap();
    }
    insta::assert_snapshot!("plans", golden);
}

fn indented(text: &str) -> String {
    let mut indented = String::new();
    for line in text.lines() {
        indented.extend(["    ", line, "\n"]);
    }
    indented
}

#[test]
fn plans_do_not_change_with_what_the_planner_learns() {
    let (_folder, db) = ledger();
    let before: Vec<String> = STATEMENTS.iter().map(|statement| plan(&db, statement.sql)).collect();
    db.raw
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO acta_standing (job, ns, name, state, place, priority, flags, max_attempts, finished_at, prune_at)
             SELECT i, 1, 0, 6, i, 50, 0, 1, 1, 1 FROM n;
             ANALYZE;",
        )
        .unwrap();
    for (statement, before) in STATEMENTS.iter().zip(before) {
        assert_eq!(plan(&db, statement.sql), before, "{}", statement.name);
    }
}

#[test]
fn every_statement_is_known_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/sql");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| path.is_file()) else { continue };
        let is_known = STATEMENTS.iter().any(|statement| statement.name == name) || MAY_SCAN.contains(&name);
        assert!(is_known, "{name}.sql has no plan");
    }
}
