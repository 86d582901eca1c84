//! The ledger as programs of any language see it: functions in the database.

mod common;

use std::fmt::Write as _;

use acta_core::{JobId, Store};
use acta_store::{PostgresStore, postgres};
use common::session::{Session, ledger};

/// Runs a test on a ledger of its own, with a connection to it.
fn with_ledger<F: Future<Output = ()>>(test: impl FnOnce(String, Session) -> F) {
    // Dropped, and with it the connections, when the test is over.
    let database = ledger();
    acta_testkit::block_on(async {
        let session = Session::open(&database.url()).await;
        test(database.url(), session).await;
    });
}

fn store(url: &str) -> PostgresStore {
    PostgresStore::new(&url.parse().unwrap(), postgres::Options::default()).unwrap()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Claims again until the lease that the first holder had has lapsed; the new fence.
async fn reclaimed(session: &Session, queue: &str) -> String {
    loop {
        if let Some(fence) = session.lines(&format!("SELECT fence FROM acta.claim('{queue}', 'heir')")).await.pop() {
            return fence;
        }
    }
}

#[test]
fn every_function_says_what_it_is_and_runs_as_its_caller() {
    with_ledger(|_url, session| async move {
        let odd = "SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'acta'::regnamespace \
                   AND proname !~ '^_' AND (obj_description(p.oid) IS NULL OR prosecdef \
                   OR NOT 'search_path=acta, pg_temp' = ANY (coalesce(proconfig, '{}')))";
        assert_eq!(session.lines(odd).await, Vec::<String>::new());
        let names = "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'acta'::regnamespace \
                     AND proname !~ '^_' ORDER BY 1";
        let known = [
            "cancelled",
            "claim",
            "complete",
            "enqueue",
            "enqueue_many",
            "fail",
            "grant_to",
            "heartbeat",
            "job",
            "release",
            "settle",
            "snooze",
            "wait",
            "wake",
        ];
        assert_eq!(session.lines(names).await, known);
    });
}

#[test]
fn a_payload_keeps_every_byte() {
    with_ledger(|url, session| async move {
        let payloads = [
            r#"{ "z" : 1 ,  "a":[ ],"z":2}"#,
            r#""\u0000 \ud800 \\u0041 \u00e9""#,
            "123456789012345678901234567890.10",
            "1e400",
            "-0.0",
            "null",
            "\"it's ~0~ 名前\"",
        ];
        let mut many = String::new();
        for payload in payloads {
            session.run(&format!("SELECT acta.enqueue('q', {})", quoted(&format!(" \n{payload}\t")))).await;
            let comma = if many.is_empty() { '[' } else { ',' };
            write!(many, r#"{comma}{{"key":"\u00e9", "payload": {payload} }}"#).unwrap();
        }
        session.run(&format!("SELECT acta.enqueue_many('q', {})", quoted(&(many + "]")))).await;
        let claimed = session.all("SELECT payload, key FROM acta.claim('q', 'w', 100)").await;
        assert_eq!(claimed.len(), 2 * payloads.len());
        for (index, row) in claimed.iter().enumerate() {
            assert_eq!(row[0].as_deref(), Some(payloads[index % payloads.len()]));
            assert_eq!(row[1].as_deref(), (index >= payloads.len()).then_some("é"));
        }
        // And the text that the ledger keeps is the one that Rust reads.
        let id = session.one("SELECT id FROM acta.jobs ORDER BY job OFFSET 1 LIMIT 1").await;
        let job = store(&url).job(JobId::new(&id).unwrap()).await.unwrap().job;
        assert_eq!(job.identity.payload.as_str(), payloads[1]);
    });
}

#[test]
fn an_enqueue_says_whatever_a_job_may_say() {
    with_ledger(|_url, session| async move {
        let shown = "SELECT queue, state, name, lane, priority, payload, max_attempts, retryable, key, dedup_key, run_at, \
                     expires_at FROM acta.job(";
        let expected = "plain|scheduled|work||7|[1]|4|f|INV-1|d'1|2100-01-02 03:04:05+00|2100-01-03 03:04:05.5+00";
        let single = "SELECT id FROM acta.enqueue('plain', '[1]', name => 'work', priority => 7, key => 'INV-1', \
                      run_at => '2100-01-02T03:04:05Z', expires_at => '2100-01-03T03:04:05.500Z', lease => '90 seconds', \
                      dedup_key => 'd''1', max_attempts => 4, retryable => false, backoff => '\"none\"')";
        let id = session.one(single).await;
        assert_eq!(session.lines(&format!("{shown}'{id}')")).await, [expected]);
        let many = r#"[{"payload": [1], "name": "work", "priority": 7, "key": "INV-1", "runAt": "2100-01-02T05:04:05+02:00",
            "expiresAt": "2100-01-03T03:04:05.500Z", "lease": "90s", "dedupKey": "d'2", "maxAttempts": 4,
            "retryable": false, "backoff": {"initial": "2s", "max": "1m"}, "lane": null}]"#;
        let id = session.one(&format!("SELECT id FROM acta.enqueue_many('plain', {})", quoted(many))).await;
        assert_eq!(session.lines(&format!("{shown}'{id}')")).await, [expected.replace("d'1", "d'2")]);
        let kept = session.lines("SELECT lease_ms, backoff FROM acta.jobs ORDER BY job").await;
        assert_eq!(kept, ["90000|\"none\"", r#"90000|{"initial":"2s","max":"1m"}"#]);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        session.one(&format!("SELECT id FROM acta.enqueue('traced', '1', traceparent => '{parent}')")).await;
        let many = format!(r#"[{{"payload": 2, "traceparent": "{parent}"}}, {{"payload": 3}}]"#);
        session.run(&format!("SELECT id FROM acta.enqueue_many('traced', {})", quoted(&many))).await;
        let claimed = session.lines("SELECT payload, traceparent FROM acta.claim('traced', 'w', 3)").await;
        assert_eq!(claimed, [format!("1|{parent}"), format!("2|{parent}"), "3|".to_owned()]);
    });
}

#[test]
fn a_key_that_is_taken_answers_its_holder() {
    with_ledger(|_url, session| async move {
        let add = |payload: &str| {
            format!(
                "SELECT id, created, payload_differs FROM acta.enqueue('q', '{payload}', dedup_key => 'k', while_live => true)"
            )
        };
        let first = session.lines(&add("1")).await.remove(0);
        let id = first.strip_suffix("|t|f").unwrap().to_owned();
        assert_eq!(session.lines(&add("1")).await, [format!("{id}|f|f")]);
        assert_eq!(session.lines(&add("2")).await, [format!("{id}|f|t")]);
        session.run(&format!("SELECT acta.claim('q', 'w'); SELECT acta.complete('q', '{id}', 1)")).await;
        assert!(session.lines(&add("2")).await[0].ends_with("|t|f"), "the key is free after the end");
    });
}

/// Calls that can never be accepted, and what is said of them.
#[test]
fn a_bad_argument_is_named() {
    let long = "x".repeat(513);
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let large = format!("\"{}\"", "x".repeat(1_048_575));
    let cases = [
        ("acta.enqueue('a b', '1')".to_owned(), "queue 'a b' is not 1 to 100"),
        ("acta.enqueue(NULL, '1')".into(), "queue NULL is not"),
        ("acta.enqueue('q', NULL)".into(), "payload NULL is missing"),
        (format!("acta.enqueue('q', '{deep}')"), "is nested deeper than 128"),
        (format!("acta.enqueue('q', '{large}')"), "has 1048577 bytes, more than the 1048576 allowed"),
        (format!("acta.enqueue('q', '1', lane => '{long}')"), "has 513 bytes; 1 to 512 are allowed"),
        ("acta.enqueue('q', '1', lane => '')".into(), "lane '' has 0 bytes"),
        ("acta.enqueue('q', '1', key => E'a\\u0085')".into(), "contains a control character"),
        ("acta.enqueue('q', '1', name => 'a/b')".into(), "name 'a/b' is not 1 to 100"),
        ("acta.enqueue('q', '1', priority => 101)".into(), "priority '101' is not between 0 and 100"),
        ("acta.enqueue('queues/q', '1', priority => 1)".into(), "only a plain namespace has priorities"),
        ("acta.enqueue('q', '1', run_at => 'infinity')".into(), "runAt 'infinity' is outside 1970 to 9999"),
        ("acta.enqueue('q', '1', lease => '0s')".into(), "lease '0' is no time at all"),
        ("acta.enqueue('q', '1', while_live => true)".into(), "says nothing without a dedup key"),
        ("acta.enqueue('q', '1', max_attempts => 0)".into(), "leaves no attempt at all"),
        ("acta.enqueue('q', '1', backoff => '{\"initial\": \"1s\"}')".into(), "is neither \"none\" nor"),
        ("acta.enqueue('q', '1', backoff => '\"soon\"')".into(), "is neither \"none\" nor"),
        ("acta.enqueue('q', '1', traceparent => '00-abc')".into(), "traceparent '00-abc' is not of the form"),
        ("acta.enqueue_many('q', '{}')".into(), "is no JSON array of objects"),
        ("acta.enqueue_many('q', '[{\"payload\": 1}, 2]')".into(), "jobs[1] is no JSON object"),
        ("acta.enqueue_many('q', '[{\"payload\": 1}, {}]')".into(), "jobs[1].payload NULL is missing"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"laen\": 2}]')".into(), "jobs[0].laen 2 is not known"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"payload\": 2}]')".into(), "jobs[0].payload  stands there twice"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"lane\": 2}]')".into(), "jobs[0].lane 2 is no string"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"priority\": 1.5}]')".into(), "is no whole number"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"retryable\": 1}]')".into(), "is neither true nor false"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"lease\": \"1 h\"}]')".into(), "is not a number with a unit"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"runAt\": \"2026-03-01T10:00:00\"}]')".into(), "is not RFC 3339"),
        ("acta.enqueue_many('q', '[{\"payload\": 1, \"runAt\": \"2026-02-30T10:00:00Z\"}]')".into(), "is not RFC 3339"),
        ("acta.claim('a b', 'w')".into(), "queue 'a b' is not"),
        ("acta.claim('q', '')".into(), "worker '' has 0 bytes"),
        ("acta.claim('q', NULL)".into(), "worker NULL is missing"),
        ("acta.claim('q', 'w', 0)".into(), "count '0' is not between 1 and 10000"),
        ("acta.claim('q', 'w', 10001)".into(), "count '10001' is not between 1 and 10000"),
        ("acta.claim('q', 'w', lease => '-1s')".into(), "is no time at all"),
        ("acta.claim('q', 'w', names => '{a b}')".into(), "name 'a b' is not"),
        ("acta.heartbeat('q', '{a}', '{}')".into(), "number of fences '0' is not that of the ids"),
        ("acta.heartbeat('q', '{a}', '{NULL}')".into(), "id 'a' has no fence"),
        ("acta.complete('q', '.a', 1)".into(), "id '.a' is not"),
        ("acta.complete('q', 'a', NULL)".into(), "fence NULL is missing"),
        (format!("acta.complete('q', 'a', 1, '{deep}')"), "is nested deeper"),
        ("acta.fail('q', 'a', 1, NULL)".into(), "message NULL is missing"),
        ("acta.fail('q', 'a', 1, 'm', 'odd')".into(), "kind 'odd' is neither business nor system"),
        ("acta.fail('q', 'a', 1, 'm', retry_after => '-1s')".into(), "is before now"),
        ("acta.wait('q', 'a', 1)".into(), "nothing could end the wait"),
        ("acta.wait('q', 'a', 1, 'a b')".into(), "signal 'a b' is not"),
        ("acta.snooze('q', 'a', 1, NULL)".into(), "until NULL is missing"),
        ("acta.snooze('q', 'a', 1, 'infinity')".into(), "until 'infinity' is outside"),
        (
            "acta.settle('q', '[{\"id\": \"a\", \"fence\": 1, \"outcome\": \"won\"}]')".into(),
            "settlements[0].outcome is none",
        ),
        ("acta.settle('q', '[{\"id\": \"a\", \"outcome\": \"release\"}]')".into(), "settlements[0].fence is missing"),
        ("acta.wake('a b')".into(), "queue 'a b' is not"),
    ];
    with_ledger(|_url, session| async move {
        for (call, said) in cases {
            let refused = session.refused(&format!("SELECT {call}")).await;
            assert!(refused.message.contains(said), "{call}: {refused:?}");
            assert_eq!(refused.state, "ACTA1", "{call}");
        }
        assert_eq!(session.one("SELECT count(*) FROM acta.jobs").await, "0");
        session.run("SELECT acta.enqueue('q', '1', name => 'Work')").await;
        let other = session.refused("SELECT acta.enqueue('q', '1', name => 'work')").await;
        assert!(other.message.contains("only by case") && other.state == "ACTA1", "{other:?}");
    });
}

#[test]
fn what_a_transaction_enqueues_is_there_after_its_commit_and_not_before() {
    with_ledger(|url, session| async move {
        let shop = Session::open(&url).await;
        let other = Session::open(&url).await;
        shop.run("CREATE TABLE orders (id int)").await;
        shop.run("BEGIN; INSERT INTO orders VALUES (1); SELECT acta.enqueue('q', '1')").await;
        assert_eq!(session.lines("SELECT id FROM acta.claim('q', 'w')").await, Vec::<String>::new());
        // Of a new namespace only its own name is waited for; this one is another.
        other.run("SELECT acta.enqueue('p', '1')").await;
        shop.run("ROLLBACK").await;
        assert_eq!(session.one("SELECT count(*) FROM acta.jobs WHERE payload = '1'").await, "1");
        shop.run("BEGIN; INSERT INTO orders VALUES (2); SELECT acta.enqueue('q', '2'); COMMIT").await;
        assert_eq!(session.lines("SELECT payload FROM acta.claim('q', 'w', 10)").await, ["2"]);
        assert_eq!(session.lines("SELECT id FROM orders").await, ["2"]);
    });
}

#[test]
fn an_open_transaction_delays_nobody_in_its_lane() {
    with_ledger(|url, session| async move {
        let slow = Session::open(&url).await;
        let add = |payload: u32| format!("SELECT acta.enqueue('q', '{payload}', lane => 'a')");
        session.run(&add(1)).await;
        slow.run(&format!("BEGIN; {}; {}", add(11), add(12))).await;
        session.run(&add(2)).await;
        // The lane goes on while the other transaction is open.
        for payload in ["1", "2"] {
            let claimed = session.lines("SELECT id, payload FROM acta.claim('q', 'w', 10)").await;
            let id = claimed[0].strip_suffix(&format!("|{payload}")).unwrap();
            assert_eq!(claimed.len(), 1, "{claimed:?}");
            session.run(&format!("SELECT acta.complete('q', '{id}', 1)")).await;
        }
        session.run(&add(3)).await;
        slow.run("COMMIT").await;
        session.run(&add(4)).await;
        // What was open joins behind what was there when it was admitted, in its own order.
        let mut order = Vec::new();
        while let Some(row) = session.all("SELECT id, payload FROM acta.claim('q', 'w', 10)").await.pop() {
            session.run(&format!("SELECT acta.complete('q', '{}', 1)", row[0].as_ref().unwrap())).await;
            order.push(row[1].clone().unwrap());
        }
        let at = |payload: &str| order.iter().position(|one| one == payload).unwrap();
        assert_eq!(order.len(), 4, "{order:?}");
        assert!(at("11") < at("12") && at("3") < at("4"), "{order:?}");
    });
}

#[test]
fn a_claim_waits_for_no_lane_that_somebody_holds() {
    with_ledger(|url, session| async move {
        let (one, other) = (Session::open(&url).await, Session::open(&url).await);
        for payload in [1, 2] {
            for lane in ["a", "b"] {
                session.run(&format!("SELECT acta.enqueue('q', '{payload}', lane => '{lane}')")).await;
            }
        }
        let held = session.all("SELECT id FROM acta.claim('q', 'w', 10)").await;
        let complete =
            |index: usize| format!("BEGIN; SELECT acta.complete('q', '{}', 1)", held[index][0].as_ref().unwrap());
        assert_eq!(held.len(), 2);
        one.run(&complete(0)).await;
        other.run(&complete(1)).await;
        // Both hold a lane now, and in both lanes something arrives: neither may wait for the other's.
        session.run("SELECT acta.enqueue('q', '3', lane => 'a'), acta.enqueue('q', '3', lane => 'b')").await;
        for session in [&one, &other] {
            session.run("SET lock_timeout = '1s'").await;
            let claimed = session.lines("SELECT payload FROM acta.claim('q', 'w', 10)").await;
            assert_eq!(claimed, ["2"]);
            session.run("COMMIT").await;
        }
        assert_eq!(session.one("SELECT count(*) FROM acta.standing WHERE arriving IS NOT NULL").await, "0");
        // Nor for one that somebody is making: its jobs come with a later claim.
        session.run("SELECT acta.enqueue('new', '1', lane => 'c')").await;
        one.run("BEGIN; SELECT acta.claim('new', 'w')").await;
        session.run("SELECT acta.enqueue('new', '2', lane => 'd')").await;
        assert_eq!(other.lines("SELECT payload FROM acta.claim('new', 'w', 10)").await, ["2"]);
        one.run("ROLLBACK").await;
        assert_eq!(other.lines("SELECT payload FROM acta.claim('new', 'w', 10)").await, ["1"]);
    });
}

#[test]
fn a_zombie_s_transaction_leaves_nothing() {
    with_ledger(|_url, session| async move {
        session.run("CREATE TABLE shipped (n int); SELECT acta.enqueue('q', '1')").await;
        let id = session.one("SELECT id FROM acta.claim('q', 'zombie', lease => '1 millisecond')").await;
        let fence = reclaimed(&session, "q").await;
        session.run("BEGIN; INSERT INTO shipped VALUES (1)").await;
        let refused = session.refused(&format!("SELECT acta.complete('q', '{id}', 1)")).await;
        assert_eq!(refused.state, "ACTA3");
        assert!(refused.message.contains("lease lost") && refused.message.contains("'heir'"), "{refused:?}");
        session.run("ROLLBACK").await;
        assert_eq!(session.one("SELECT count(*) FROM shipped").await, "0");
        let done = session.lines(&format!("SELECT * FROM acta.complete('q', '{id}', {fence})")).await;
        assert_eq!(done, ["succeeded|"]);
    });
}

#[test]
fn a_lapsed_lease_that_nobody_took_is_still_its_holder_s() {
    with_ledger(|_url, session| async move {
        session.run("SELECT acta.enqueue('q', '1')").await;
        let id = session.one("SELECT id FROM acta.claim('q', 'w', lease => '1 millisecond')").await;
        while session.one(&format!("SELECT lease_expires_at > clock_timestamp() FROM acta.job('{id}')")).await == "t" {}
        assert_eq!(session.one(&format!("SELECT state FROM acta.complete('q', '{id}', 1)")).await, "succeeded");
    });
}

#[test]
fn each_refusal_has_its_state() {
    with_ledger(|_url, session| async move {
        let id = session.one("SELECT id FROM acta.enqueue('q', '1')").await;
        let verbs = [
            format!("acta.complete('q', '{id}', 1)"),
            format!("acta.fail('q', '{id}', 1, 'm')"),
            format!("acta.snooze('q', '{id}', 1, now())"),
            format!("acta.wait('q', '{id}', 1, 's')"),
            format!("acta.release('q', '{id}', 1)"),
            format!("acta.cancelled('q', '{id}', 1)"),
        ];
        for verb in &verbs {
            let refused = session.refused(&format!("SELECT {verb}")).await;
            assert!(refused.state == "ACTA4" && refused.message.contains("never claimed"), "{refused:?}");
            let refused = session.refused(&format!("SELECT {}", verb.replace(&id, "nobody"))).await;
            assert!(refused.state == "ACTA2" && refused.message.contains("no job nobody"), "{refused:?}");
            let refused = session.refused(&format!("SELECT {}", verb.replace("'q'", "'p'"))).await;
            assert!(refused.state == "ACTA2" && refused.message.contains("no queue p"), "{refused:?}");
        }
        session.run("SELECT acta.claim('q', 'w')").await;
        for verb in &verbs {
            let refused = session.refused(&format!("SELECT {}", verb.replace(", 1", ", 7"))).await;
            assert!(refused.state == "ACTA3" && refused.message.contains("under fence 7"), "{refused:?}");
        }
        session.run(&format!("SELECT {}", verbs[0])).await;
        for verb in &verbs[1..] {
            let refused = session.refused(&format!("SELECT {verb}")).await;
            assert!(refused.state == "ACTA4" && refused.message.contains("with another outcome"), "{refused:?}");
        }
        for level in ["REPEATABLE READ", "SERIALIZABLE"] {
            let calls =
                ["acta.enqueue('q', '1')", "acta.claim('q', 'w')", "acta.heartbeat('q', '{a}', '{1}')", &verbs[0]];
            for call in calls {
                let refused = session.refused(&format!("BEGIN ISOLATION LEVEL {level}; SELECT {call}")).await;
                session.run("ROLLBACK").await;
                assert!(refused.state == "ACTA6" && refused.message.contains("READ COMMITTED"), "{refused:?}");
            }
        }
        session.run("UPDATE acta.ledger SET is_open = false, openness = '{\"is\":\"moved\",\"to\":\"x\"}'").await;
        assert_eq!(session.refused("SELECT acta.enqueue('q', '1')").await.state, "ACTA5");
    });
}
