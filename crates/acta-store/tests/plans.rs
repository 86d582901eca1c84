//! How PostgreSQL goes about the statements of the hot verbs, written down: a scan of a whole table fails the test.
//!
//! The plans are those of the library's own calls, as the server ran them: `auto_explain` sends each to the client.

mod common;
#[path = "plans/told.rs"]
mod told;
#[path = "plans/verbs.rs"]
mod verbs;

use acta_testkit::postgres::sql;
use told::{Plan, Verb};
use verbs::Stage;

/// Tables that grow with the jobs, the lanes or the time. Others have a row a queue or a definition, or are short because
/// maintenance empties them: `changes`.
const LARGE: [&str; 9] =
    ["standing", "jobs", "details", "keys", "lanes", "events", "signals", "steps", "foreign_members"];

/// Indexes, and the columns without which a look at one walks over all that a queue has there. The other indexes of a
/// queue's rows hold little (arrivals, what came late), or are looked at for one row.
const NARROWED_BY: [(&str, &[&str]); 7] = [
    ("standing_fresh", &["ns", "priority", "place"]),
    ("standing_due", &["ns", "due_at"]),
    ("standing_prune", &["ns", "prune_at"]),
    ("standing_arriving", &["ns"]),
    ("keys_pkey", &["ns", "key"]),
    ("keys_expired", &["ns", "expires_at"]),
    ("lanes_ns_name_key", &["ns", "name"]),
];

/// Indexes of which the planner uses the first column alone until it has been told, for the first time, how much is there;
/// the server sees to that about a minute after the first jobs.
const BEFORE_ANALYSE: [&str; 2] = ["keys_pkey", "lanes_ns_name_key"];

/// What is wrong with a plan: scans of a whole table or index that grows.
fn scans(plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    plan.walk(&mut |node| {
        let table = node.text("Relation Name");
        let index = node.text("Index Name");
        let condition = node.text("Index Cond");
        let is_large = LARGE.iter().any(|large| table == Some(large) || belongs_to(index, large));
        let is_narrow = |condition: &str| {
            let known = NARROWED_BY.iter().find(|(name, _)| index == Some(*name));
            known.is_none_or(|(_, columns)| columns.iter().all(|column| mentions(condition, column)))
        };
        let is_wrong = match node.kind() {
            "Seq Scan" | "Parallel Seq Scan" | "Sample Scan" => is_large,
            "Index Scan" | "Index Only Scan" | "Bitmap Index Scan" => is_large && !condition.is_some_and(is_narrow),
            _ => false,
        };
        if is_wrong {
            wrong.push(format!("{}: {}", plan.query(), node.line()));
        }
    });
    wrong
}

/// Whether an index is one of this table; a plan does not always say it.
fn belongs_to(index: Option<&str>, table: &str) -> bool {
    index.and_then(|index| index.strip_prefix(table)).is_some_and(|rest| rest.starts_with('_'))
}

/// Whether a condition speaks of a column.
fn mentions(condition: &str, column: &str) -> bool {
    condition.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == column)
}

/// All that is wrong, each once.
fn wrong_in(verbs: &[Verb]) -> Vec<String> {
    let mut all = Vec::new();
    for verb in verbs {
        for wrong in verb.plans.iter().flat_map(scans) {
            let wrong = format!("{}: {wrong}", verb.name);
            if !all.contains(&wrong) {
                all.push(wrong);
            }
        }
    }
    all
}

/// The hot verbs on a ledger after a script; with the version of the server.
fn hot_verbs_after(script: &str) -> (Vec<Verb>, Vec<String>) {
    let _alone = told::alone();
    let stage = Stage::new(script);
    let verbs = acta_testkit::block_on(stage.hot_verbs());
    (verbs, sql(&stage.url(), "SELECT current_setting('server_version_num')::integer / 10000").unwrap())
}

#[test]
fn no_statement_of_a_hot_verb_scans_a_table() {
    let (verbs, version) = hot_verbs_after("ANALYZE");
    assert_eq!(wrong_in(&verbs), Vec::<String>::new());
    for verb in &verbs {
        assert!(!verb.plans.is_empty(), "no plans of {}", verb.name);
    }
    // Versions differ in words and in what they make of joins; the rule above holds for all of them.
    if version == ["15"] {
        insta::assert_snapshot!("plans", told::golden(&verbs));
    }
}

#[test]
fn a_ledger_that_was_never_analysed_is_not_scanned_either() {
    let (verbs, _) = hot_verbs_after("SELECT 1");
    let mut wrong = wrong_in(&verbs);
    wrong.retain(|wrong| !BEFORE_ANALYSE.iter().any(|index| wrong.ends_with(&format!("by {index} (ns = ?)"))));
    assert_eq!(wrong, Vec::<String>::new());
}

/// What these tests are good for.
#[test]
fn a_ledger_without_one_of_its_indexes_is_found_out() {
    for index in ["standing_fresh", "standing_due", "standing_prune", "standing_next", "events_job"] {
        let (verbs, _) = hot_verbs_after(&format!("DROP INDEX acta.{index}; ANALYZE"));
        assert_ne!(wrong_in(&verbs), Vec::<String>::new(), "{index} is not missed");
    }
}
