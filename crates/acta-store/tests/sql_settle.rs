//! Settling, heartbeats and rights, from SQL and from Rust at once.

mod common;

use acta_core::job::FailureKind;
use acta_core::store::{Action, Claimant, Failure, Operation, Outcome, Settlement, Wave};
use acta_core::{JobId, Json, Name, Span, Store, Timestamp};
use acta_store::{PostgresStore, postgres};
use common::child::{add, claim, label, numbered, queue};
use common::session::{Session, ledger};

/// The queue of [`queue`], as SQL names it.
const QUEUE: &str = "transactions/q";

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

/// Every outcome, as SQL says it and as Rust does; `$` stands for queue, id and fence.
fn outcomes() -> Vec<(String, Outcome)> {
    let until: Timestamp = "2100-02-03T04:05:06.789Z".parse().unwrap();
    let odd = "it's \"odd\" \\ / \u{1}\t\r\n\u{8}\u{c}\u{1f}\u{7f} \u{e9}\u{1f600}";
    let long = "\u{e9}".repeat(40_000);
    let json = |text: &str| Json::new(text).unwrap();
    let rich = Failure {
        code: Some("E-1\u{2}".into()),
        details: Some(json(r#"{ "b" : 1, "a": "\u0000" }"#)),
        retry_after: Some(Span::from_millis(5_400_000)),
        ..Failure::new(FailureKind::System, odd)
    };
    let soon = Failure { retry_after: Some(Span::from_millis(0)), ..Failure::new(FailureKind::System, "m") };
    vec![
        ("acta.complete($)".into(), Outcome::Succeeded(None)),
        ("acta.complete($, ' [1,  2.50]')".into(), Outcome::Succeeded(Some(json("[1,  2.50]")))),
        ("acta.complete($, 'null')".into(), Outcome::Succeeded(Some(json("null")))),
        (
            format!(
                "acta.fail($, {}, code => E'E-1\\u0002', details => '{{ \"b\" : 1, \"a\": \"\\u0000\" }}', \
                 retry_after => '90 minutes')",
                quoted(odd)
            ),
            Outcome::Failed(rich),
        ),
        ("acta.fail($, 'm', retry_after => '0')".into(), Outcome::Failed(soon)),
        ("acta.fail($, 'm')".into(), Outcome::Failed(Failure::new(FailureKind::System, "m"))),
        (
            format!("acta.fail($, '{long}', 'business')"),
            Outcome::Failed(Failure::new(FailureKind::Business, long.clone())),
        ),
        ("acta.snooze($, '2100-02-03T04:05:06.789Z')".into(), Outcome::Snooze(until)),
        ("acta.wait($, 's.1')".into(), Outcome::Wait { until: None, signal: Some(Name::trusted("s.1")) }),
        (
            "acta.wait($, until => '2100-02-03T05:05:06.789+01')".into(),
            Outcome::Wait { until: Some(until), signal: None },
        ),
        (
            "acta.wait($, 's', '2100-02-03T04:05:06.789Z')".into(),
            Outcome::Wait { until: Some(until), signal: Some(Name::trusted("s")) },
        ),
        ("acta.release($)".into(), Outcome::Release),
        ("acta.cancelled($)".into(), Outcome::Cancelled),
    ]
}

/// Settles from Rust; the answer as SQL would print it.
async fn settled(store: &PostgresStore, id: &str, outcome: Outcome) -> String {
    let settlements =
        vec![Settlement { id: JobId::new(id).unwrap(), claimant: Claimant::fence(1), outcome: outcome.clone() }];
    let answer = store
        .settle(Wave { namespace: queue(), settlements })
        .await
        .unwrap()
        .remove(0)
        .unwrap_or_else(|fault| panic!("{outcome:?}: {fault}"));
    let run_at = answer.run_at.map(|run_at| run_at.as_millis().to_string()).unwrap_or_default();
    format!("{}|{run_at}", answer.state.word())
}

/// Whoever settles first, SQL or Rust: the other's repeat is known, and what is kept is the same.
#[test]
fn a_repeat_from_either_side_answers_the_same() {
    with_ledger(|url, session| async move {
        let store = store(&url);
        let kept = |id: &str| {
            let whole =
                "SELECT w.state, w.settled, w.output, w.exception, w.wait, w.wait_until, w.attempts FROM acta.whole w";
            format!("{whole} WHERE id = '{id}'")
        };
        for (call, outcome) in outcomes() {
            add(&store, vec![numbered(1), numbered(2)]).await.unwrap();
            let jobs = claim(&store, "w", 2).await.unwrap();
            let [by_sql, by_rust] = [0, 1].map(|index| jobs[index].identity.id.to_string());
            let say = |id: &str| {
                let call = call.replace('$', &format!("'{QUEUE}', '{id}', 1"));
                format!("SELECT state, floor(extract(epoch FROM run_at) * 1000) FROM {call}")
            };
            let first = session.lines(&say(&by_sql)).await.remove(0);
            assert_eq!(session.lines(&say(&by_sql)).await, [first.as_str()], "{call}: SQL after SQL");
            assert_eq!(settled(&store, &by_sql, outcome.clone()).await, first, "{call}: Rust after SQL");
            let first = settled(&store, &by_rust, outcome).await;
            assert_eq!(session.lines(&say(&by_rust)).await, [first], "{call}: SQL after Rust");
            assert_eq!(session.lines(&kept(&by_sql)).await, session.lines(&kept(&by_rust)).await, "{call}");
            // Out of the next ones' way.
            session.run("UPDATE acta.standing SET flags = flags | 1 WHERE state < 6").await;
        }
    });
}

#[test]
fn what_sql_enqueues_rust_claims_and_the_other_way_round() {
    with_ledger(|url, session| async move {
        let store = store(&url);
        session.run(&format!("SELECT acta.enqueue('{QUEUE}', '{{\"n\":  1}}', lane => 'a', key => 'k')")).await;
        let jobs = claim(&store, "w", 10).await.unwrap();
        assert_eq!(jobs.len(), 1);
        let (identity, standing) = (&jobs[0].identity, &jobs[0].standing);
        assert_eq!((identity.payload.as_str(), standing.fence, standing.attempts), (r#"{"n":  1}"#, 1, 1));
        let done = format!("SELECT state FROM acta.complete('{QUEUE}', '{}', 1, '{{\"a\": [ ]}}')", identity.id);
        assert_eq!(session.one(&done).await, "succeeded");
        let found = store.job(identity.id.clone()).await.unwrap().job;
        assert_eq!(found.detail.output.map(|output| output.to_string()).as_deref(), Some(r#"{"a": [ ]}"#));

        let id = add(&store, vec![numbered(7)]).await.unwrap().remove(0);
        let claimed = format!(
            "SELECT id, fence, payload, attempt, max_attempts, lease_expires_at - now() BETWEEN '4 minutes' AND '6 minutes' FROM acta.claim('{QUEUE}', 'sql')"
        );
        assert_eq!(session.lines(&claimed).await, [format!("{id}|1|7|1|3|t")]);
        assert_eq!(settled(&store, id.as_str(), Outcome::Succeeded(None)).await, "succeeded|");
        let shown =
            format!("SELECT state, attempts, fence, claimed_by, output, finished_at IS NULL FROM acta.job('{id}')");
        assert_eq!(session.lines(&shown).await, ["succeeded|1|1|sql||f"]);
        assert_eq!(session.lines("SELECT id FROM acta.job('nobody')").await, Vec::<String>::new());
    });
}

#[test]
fn a_wave_is_judged_one_by_one() {
    with_ledger(|url, session| async move {
        let store = store(&url);
        add(&store, (0..6).map(numbered).collect()).await.unwrap();
        let jobs = claim(&store, "w", 5).await.unwrap();
        let id = |index: usize| jobs[index].identity.id.to_string();
        let unclaimed = session.one("SELECT id FROM acta.whole WHERE state = 1").await;
        let wave = format!(
            r#"[{{"id": "{}", "fence": 1, "outcome": "succeeded"}},
                {{"id": "{}", "fence": 1, "outcome": "succeeded", "output": {{ "x":"\u0000" }}}},
                {{"id": "{}", "fence": 2, "outcome": "succeeded"}},
                {{"id": "{}", "fence": 1, "outcome": "failed", "message": "no", "kind": "business", "details": [1]}},
                {{"id": "{unclaimed}", "fence": 1, "outcome": "release"}},
                {{"id": "nobody", "fence": 1, "outcome": "release"}},
                {{"id": "{}", "fence": 1, "outcome": "snooze", "until": "2100-01-01T00:00:00Z"}}]"#,
            id(0),
            id(1),
            id(2),
            id(3),
            id(4)
        );
        let expected = [
            format!("{}|succeeded||", id(0)),
            format!("{}|succeeded||", id(1)),
            format!("{}|claimed||lease-lost", id(2)),
            format!("{}|failed||", id(3)),
            format!("{unclaimed}|ready||refused"),
            "nobody|||not-found".to_owned(),
            format!("{}|scheduled|2100-01-01 00:00:00+00|", id(4)),
        ];
        let call = format!("SELECT * FROM acta.settle('{QUEUE}', {})", quoted(&wave));
        assert_eq!(session.lines(&call).await, expected);
        assert_eq!(session.lines(&call).await, expected, "the same again");
        assert_eq!(session.one(&format!("SELECT output FROM acta.job('{}')", id(1))).await, r#"{ "x":"\u0000" }"#);
        let exception = session.one(&format!("SELECT exception FROM acta.job('{}')", id(3))).await;
        assert_eq!(exception, r#"{"kind":"business","message":"no","details":[1]}"#);
    });
}

#[test]
fn a_heartbeat_extends_and_tells() {
    with_ledger(|url, session| async move {
        let store = store(&url);
        add(&store, (0..4).map(numbered).collect()).await.unwrap();
        let jobs = claim(&store, "w", 4).await.unwrap();
        let ids: Vec<String> = jobs.iter().map(|job| job.identity.id.to_string()).collect();
        let cancel = Operation {
            namespace: queue(),
            ids: vec![jobs[1].identity.id.clone()],
            action: Action::Cancel { force: false },
            actor: Some(label("me")),
            reason: None,
        };
        store.operate(cancel).await.unwrap().remove(0).unwrap();
        let other = Session::open(&url).await;
        other.run(&format!("BEGIN; SELECT acta.release('{QUEUE}', '{}', 1)", ids[3])).await;
        let beat = format!(
            "SELECT id, lease_expires_at > now() + interval '59 minutes', cancel_requested, lost, busy \
             FROM acta.heartbeat('{QUEUE}', '{{{},nobody}}', '{{1,1,2,1,1}}', lease => '1 hour')",
            ids.join(",")
        );
        let expected = [
            format!("{}|t|f|f|f", ids[0]),
            format!("{}|t|t|f|f", ids[1]),
            format!("{}||f|t|f", ids[2]),
            format!("{}||f|f|t", ids[3]),
            "nobody||f|t|f".into(),
        ];
        assert_eq!(session.lines(&beat).await, expected);
        other.run("COMMIT").await;
        assert_eq!(session.lines(&beat).await[3], format!("{}||f|t|f", ids[3]), "given back: no longer held");
        let shorter = format!(
            "SELECT lease_expires_at > now() + interval '59 minutes' FROM acta.heartbeat('{QUEUE}', '{{{}}}', '{{1}}', '1s')",
            ids[0]
        );
        assert_eq!(session.one(&shorter).await, "t", "never shortened");
        let missing = session.refused("SELECT acta.heartbeat('nowhere', '{a}', '{1}')").await;
        assert_eq!(missing.state, "ACTA2");
    });
}

#[test]
fn a_role_that_was_granted_the_ledger_uses_it_and_no_more() {
    with_ledger(|_url, session| async move {
        let role = format!("acta_user_{}", std::process::id());
        session.run(&format!("CREATE ROLE {role}; GRANT CREATE ON SCHEMA public TO {role}; SET ROLE {role}")).await;
        let refused = session.refused("SELECT acta.enqueue('q', '1')").await;
        assert_eq!(refused.state, "42501", "nothing without the grant: {refused:?}");
        session.run(&format!("RESET ROLE; SELECT acta.grant_to('{role}'); SET ROLE {role}")).await;
        session
            .run("SELECT acta.enqueue('q', '1', name => 'work', lane => 'a', dedup_key => 'k', while_live => true)")
            .await;
        session.run("SELECT acta.enqueue_many('q', '[{\"payload\": 2, \"lane\": \"a\"}]')").await;
        for (call, state) in [("complete", "succeeded"), ("fail", "scheduled")] {
            let id = session.one("SELECT id FROM acta.claim('q', 'w')").await;
            session.run(&format!("SELECT acta.heartbeat('q', '{{{id}}}', '{{1}}')")).await;
            let argument = if call == "fail" { ", 'm'" } else { ", '[1]'" };
            assert_eq!(session.one(&format!("SELECT state FROM acta.{call}('q', '{id}', 1{argument})")).await, state);
            assert_eq!(session.one(&format!("SELECT state FROM acta.job('{id}')")).await, state);
        }
        session.run("SELECT acta.wake('q')").await;
        for forbidden in [
            "UPDATE acta.ledger SET is_open = false",
            "DELETE FROM acta.migrations",
            "CREATE TABLE acta.mine ()",
            "DROP FUNCTION acta.wake(text)",
            "TRUNCATE acta.jobs",
        ] {
            assert_eq!(session.refused(forbidden).await.state, "42501", "{forbidden}");
        }
        let refused = session.refused(&format!("SELECT acta.grant_to('{role}')")).await;
        assert!(refused.message.contains("only the owner of the ledger"), "{refused:?}");
        session.run(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await;
    });
}

#[test]
fn a_wake_up_comes_with_the_commit() {
    with_ledger(|url, mut session| async move {
        session.run("LISTEN acta").await;
        let shop = Session::open(&url).await;
        shop.run("BEGIN; SELECT acta.wake('queues/first'); ROLLBACK; BEGIN; SELECT acta.wake('queues/a'); COMMIT")
            .await;
        assert_eq!(session.notification().await, ("acta".into(), "queues/a".into()));
    });
}
