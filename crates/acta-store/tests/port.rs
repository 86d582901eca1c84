//! Whole ledgers: copied from one substrate to another, backed up, marked.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acta_core::job::FailureKind;
use acta_core::store::{
    Action, Claimant, Dedup, Define, Enqueue, Failure, Heartbeats, Hold, Mark, NewJob, News, Operation, Outcome,
    QueueFilter, Report, Settlement, Wave, copy,
};
use acta_core::vitals::{Activity, Card, Presence};
use acta_core::{
    Backoff, Clock, Definition, Error, JobId, Json, ManualClock, Name, Namespace, QueueSettings, Span, Store, Timestamp,
};
use acta_testkit::block_on;
use acta_testkit::desk::START;
use acta_testkit::invariants::{all_jobs, violations};
use common::child::{add, claim, label, numbered, open_at, queue, settle};

/// A folder with ledgers, all on one standing clock.
struct Desk {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Desk {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        Self { folder: tempfile::tempdir().unwrap(), clock }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, name: &str) -> Arc<dyn Store> {
        open_at(&self.path(name), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    fn copy(&self, from: &str, to: &str) -> Result<(usize, usize), Error> {
        block_on(copy(&*self.open(from), &*self.open(to), (from, to), self.clock.now()))
    }

    /// The files of namespaces, by their paths in the ledger.
    fn files(&self, name: &str) -> BTreeMap<PathBuf, String> {
        // What all have in common, and what is no part of the jobs.
        fn is_aside(path: &Path) -> bool {
            path.file_name().unwrap().to_str().unwrap().starts_with('.')
        }
        fn walk(folder: &Path, root: &Path, files: &mut BTreeMap<PathBuf, String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let below = path.strip_prefix(root).unwrap().to_owned();
                if path.is_dir() {
                    walk(&path, root, files);
                } else if below.extension().is_some_and(|ending| ending == "json") && !is_aside(&below) {
                    files.insert(below, std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(&self.path(name), &self.path(name), &mut files);
        files
    }
}

fn json(text: &str) -> Json {
    Json::new(text).unwrap()
}

/// Something of everything that a ledger can hold, and no live lease.
async fn everything(store: &dyn Store, clock: &ManualClock) -> Vec<JobId> {
    let name = Name::new("name", "report").unwrap();
    let definition = Definition { retention: Some(Span::from_millis(7_000)), ..Definition::new(name.clone()) };
    store.define(Define::Job(definition)).await.unwrap();
    store.define(Define::Job(Definition::new(Name::new("name", "Never.used").unwrap()))).await.unwrap();
    let settings = QueueSettings { lease: Some(Span::from_millis(30_000)), retention: None };
    store.define(Define::Queue(queue(), settings)).await.unwrap();
    let keyed = |key: &str, while_live| Some(Dedup { key: label(key), while_live });
    let jobs = vec![
        NewJob { lane: Some(label("north")), key: Some(label("INV-1")), dedup: keyed("a", false), ..numbered(0) },
        NewJob {
            lane: Some(label("north")),
            dedup: keyed("b", true),
            lease: Some(Span::from_millis(9_000)),
            ..numbered(1)
        },
        NewJob { name: Some(name), dedup: keyed("c", false), ..numbered(2) },
        NewJob { payload: json("{ \"z\" :\t1e400 ,\n \"a\":[ ] }"), backoff: Some(Backoff::None), ..numbered(3) },
        NewJob { run_at: Some(Timestamp::from_millis(START + 999_000)), max_attempts: Some(9), ..numbered(4) },
        NewJob { expires_at: Some(Timestamp::from_millis(START + 99_000)), retryable: Some(false), ..numbered(5) },
        numbered(6),
        numbered(7),
    ];
    let ids = add(store, jobs).await.unwrap();
    let plain = Namespace::plain("plain").unwrap();
    let urgent = NewJob { priority: Some(99), ..numbered(1) };
    store.enqueue(Enqueue { namespace: plain, jobs: vec![numbered(1), urgent] }).await.unwrap();
    let empty = Namespace::job_queue("empty").unwrap();
    store.define(Define::Queue(empty, QueueSettings::default())).await.unwrap();
    clock.advance_ms(1_000);
    let signal = Name::new("signal", "go").unwrap();
    let act = async |id: &JobId, action: Action| {
        let operation = Operation {
            namespace: queue(),
            ids: vec![id.clone()],
            action,
            actor: Some(label("o'brien")),
            reason: Some("because".into()),
        };
        store.operate(operation).await.unwrap().remove(0).unwrap();
    };
    act(&ids[1], Action::Signal { name: signal.clone(), payload: json("[1,  2]") }).await;
    act(&ids[7], Action::Pause).await;
    let outcomes = [
        Outcome::Failed(Failure {
            code: Some("E1".into()),
            details: Some(json("{}")),
            ..Failure::new(FailureKind::Business, "no")
        }),
        Outcome::Succeeded(Some(json("{\"n\" : 1}"))),
        Outcome::Failed(Failure::new(FailureKind::System, "again")),
        Outcome::Wait { until: None, signal: Some(signal) },
        Outcome::Succeeded(None),
    ];
    for (job, outcome) in claim(store, "robot", 5).await.unwrap().iter().zip(outcomes) {
        let report = |news| Report {
            namespace: queue(),
            id: job.identity.id.clone(),
            claimant: Claimant::fence(job.standing.fence),
            news,
        };
        store.report(report(News::Started)).await.unwrap();
        store.report(report(News::Progress("half".into()))).await.unwrap();
        store.report(report(News::Step { name: "s".into(), value: json("null") })).await.unwrap();
        settle(store, job, outcome).await.unwrap();
    }
    act(&ids[0], Action::Restart).await;
    act(&ids[4], Action::Cancel { force: false }).await;
    let pause = |lane, paused| Hold { namespace: queue(), lane, paused, actor: None, reason: None };
    store.hold(pause(Some(label("south")), true)).await.unwrap();
    store.hold(pause(Some(label("north")), true)).await.unwrap();
    store.hold(pause(None, true)).await.unwrap();
    ids
}

#[test]
fn from_file_to_sqlite_and_back_are_the_same_bytes() {
    let desk = Desk::new();
    block_on(everything(&*desk.open("first"), &desk.clock));
    let path = desk.path("first/transactions/q.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("\"attempts\"", "\"note\": [1,  2],\n      \"attempts\"", 1);
    std::fs::write(&path, text.replacen("  \"items\"", "  \"$comment\": \"mine\",\n  \"items\"", 1)).unwrap();
    // What was added by hand goes behind what is known; one write brings it there.
    let resume = Hold { namespace: queue(), lane: Some(label("north")), paused: false, actor: None, reason: None };
    block_on(desk.open("first").hold(resume)).unwrap();
    let before = desk.files("first");
    assert!(before.values().any(|text| text.contains("\"note\": [1,  2]") && text.contains("\"$comment\": \"mine\"")));

    assert_eq!(desk.copy("first", "second.db"), Ok((3, 10)));
    assert_eq!(block_on(violations(&*desk.open("second.db"))).unwrap(), Vec::<String>::new());
    assert_eq!(desk.copy("second.db", "third"), Ok((3, 10)));
    assert_eq!(desk.copy("third", "fourth"), Ok((3, 10)));
    for name in ["third", "fourth"] {
        let after = desk.files(name);
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        for (path, text) in &after {
            assert_eq!(*text, before[path], "{}", path.display());
        }
        assert_eq!(block_on(violations(&*desk.open(name))).unwrap(), Vec::<String>::new());
    }
    // The same numbers go on, and the definitions are there.
    let (old, new) =
        (block_on(desk.open("first").export(None)).unwrap(), block_on(desk.open("fourth").export(None)).unwrap());
    assert_eq!(old.common.last_number, new.common.last_number);
    assert_eq!(old.common.definitions().collect::<Vec<_>>(), new.common.definitions().collect::<Vec<_>>());
    assert_eq!(old.common.names().collect::<Vec<_>>(), new.common.names().collect::<Vec<_>>());
}

/// What happened, and who works, is of the ledger where it happened.
#[test]
fn workers_and_minutes_stay_behind() {
    let providers = [common::files, common::sqlite, common::postgres];
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let (source, target) = (acta_testkit::Desk::open(providers[from]), acta_testkit::Desk::open(providers[to]));
        block_on(async {
            add(&*source.store, vec![numbered(1), numbered(2)]).await.unwrap();
            let worker = Card {
                id: label("w"),
                robot: label("r"),
                host: label("h"),
                pid: 1,
                version: label("1"),
                concurrency: 1,
                running: 0,
            };
            let worker = Some(Presence::Here(worker));
            let beats = Heartbeats { namespace: queue(), beats: Vec::new(), lease: None, worker };
            source.store.heartbeat(beats).await.unwrap();
            copy(&*source.store, &*target.store, ("one", "other"), Desk::new().clock.now()).await.unwrap();
            // What has come is folded, where that is done.
            target.store.recover(queue()).await.unwrap();
            for (desk, count) in [(&source, 1), (&target, 0)] {
                let Activity { workers, minutes, .. } = desk.activity(&queue().to_string(), 1_440).await;
                assert_eq!((workers.len(), minutes.len()), (count, count), "from {from} to {to}");
            }
            let overview = target.store.queues(QueueFilter::default()).await.unwrap();
            assert_eq!(overview.queues[0].1.values().sum::<u64>(), 2);
        });
    }
}

/// A copied ledger goes on where the other one was: the same jobs come in the same order.
#[test]
fn a_copied_ledger_goes_on_where_the_other_one_was() {
    for (from, to) in [("a", "b.db"), ("c.db", "d"), ("e.db", "f.db")] {
        let desk = Desk::new();
        let ids = block_on(everything(&*desk.open(from), &desk.clock));
        desk.copy(from, to).unwrap();
        let store = desk.open(to);
        block_on(async {
            for lane in [Some(label("north")), None] {
                let resume = Hold { namespace: queue(), lane, paused: false, actor: None, reason: None };
                store.hold(resume).await.unwrap();
            }
            desk.clock.advance_ms(50_000);
            let added = add(&*store, vec![numbered(8)]).await.unwrap();
            let claimed = claim(&*store, "r", 10).await.unwrap();
            let order: Vec<&JobId> = claimed.iter().map(|job| &job.identity.id).collect();
            assert_eq!(order, [&ids[1], &ids[3], &added[0]], "{from} to {to}");
            assert_eq!(claimed[1].standing.fence, 2, "fences came along");
            let twin = NewJob { dedup: Some(Dedup { key: label("c"), while_live: false }), ..numbered(2) };
            let told = store.enqueue(Enqueue { namespace: queue(), jobs: vec![twin] }).await.unwrap().remove(0);
            assert!(!told.created && told.id == ids[2], "keys came along");
            assert_eq!(violations(&*store).await.unwrap(), Vec::<String>::new());
        });
    }
}

#[test]
fn a_copy_is_refused_where_it_would_lose_something() {
    for (from, to) in [("a", "b.db"), ("c.db", "d")] {
        let desk = Desk::new();
        block_on(add(&*desk.open(from), vec![numbered(1)])).unwrap();
        let job = block_on(claim(&*desk.open(from), "r", 1)).unwrap().remove(0);
        let fault = desk.copy(from, to).unwrap_err();
        assert!(fault.is_closed(), "{fault}");
        for part in ["while a robot has a job", job.identity.id.as_str(), "settle or cancel it, or wait"] {
            assert!(fault.to_string().contains(part), "{fault}");
        }
        assert!(block_on(add(&*desk.open(to), vec![numbered(1)])).is_ok(), "the target is as it was");
        block_on(settle(&*desk.open(from), &job, Outcome::Release)).unwrap();
        let fault = desk.copy(from, to).unwrap_err();
        assert!(fault.is_closed() && fault.to_string().contains("is not empty"), "{fault}");
        assert!(block_on(add(&*desk.open(from), vec![numbered(2)])).is_ok(), "the source is as it was");
    }
}

#[test]
fn a_copied_ledger_takes_no_more_writes_and_says_where_to_go() {
    for (from, to) in [("a", "b.db"), ("c.db", "d")] {
        let desk = Desk::new();
        let store = desk.open(from);
        let id = block_on(add(&*store, vec![numbered(1)])).unwrap().remove(0);
        desk.copy(from, to).unwrap();
        block_on(async {
            let claimant = Claimant::fence(1);
            let settlement = Settlement { id: id.clone(), claimant: claimant.clone(), outcome: Outcome::Release };
            let wave = Wave { namespace: queue(), settlements: vec![settlement] };
            let one = acta_core::store::Claim::one(queue(), label("r"));
            let beats = Heartbeats {
                namespace: queue(),
                beats: vec![(id.clone(), claimant.clone())],
                lease: None,
                worker: None,
            };
            let report = Report { namespace: queue(), id: id.clone(), claimant, news: News::Started };
            let ids = vec![id.clone()];
            let operation = Operation { namespace: queue(), ids, action: Action::Pause, actor: None, reason: None };
            let hold = Hold { namespace: queue(), lane: None, paused: true, actor: None, reason: None };
            let refusals = [
                add(&*store, vec![numbered(1)]).await.map(|_| ()),
                store.claim(one.clone()).await.map(|_| ()),
                store.settle(wave.clone()).await.map(|_| ()),
                store.exchange(wave, one).await.map(|_| ()),
                store.heartbeat(beats).await.map(|_| ()),
                store.report(report).await,
                store.operate(operation).await.map(|_| ()),
                store.hold(hold).await,
                store.recover(queue()).await.map(|_| ()),
                store.prune(queue(), 10).await.map(|_| ()),
                store.define(Define::Queue(queue(), QueueSettings::default())).await,
                store.define(Define::Job(Definition::new(Name::new("name", "x").unwrap()))).await,
            ];
            for (index, refusal) in refusals.into_iter().enumerate() {
                let fault = refusal.unwrap_err();
                assert!(fault.is_closed() && fault.to_string().contains(&format!("moved to {to}")), "{index}: {fault}");
            }
            assert_eq!(all_jobs(&*store).await.unwrap().len(), 1, "it can be read");
        });
        // Another store, and another process, is told the same.
        assert!(block_on(add(&*desk.open(from), vec![numbered(1)])).unwrap_err().is_closed());
        assert!(desk.copy(from, "elsewhere").unwrap_err().is_closed());
    }
}

/// Interrupted anywhere, and done again: the copy is whole. Until then nobody works in either ledger.
#[test]
fn an_interrupted_copy_is_resumed_by_doing_it_again() {
    for (from, to) in [("a", "b.db"), ("c.db", "d")] {
        for steps in 0..5_usize {
            let desk = Desk::new();
            block_on(everything(&*desk.open(from), &desk.clock));
            let (source, target) = (desk.open(from), desk.open(to));
            block_on(async {
                let overview = source.queues(QueueFilter::default()).await.unwrap();
                target.mark(Mark::Arriving { from: from.into() }).await.unwrap();
                if steps > 0 {
                    source.mark(Mark::Leaving { to: to.into() }).await.unwrap();
                }
                if steps > 1 {
                    target.import(source.export(None).await.unwrap()).await.unwrap();
                }
                for (queue, _) in overview.queues.iter().take(steps.saturating_sub(2)) {
                    target.import(source.export(Some(queue.namespace.clone())).await.unwrap()).await.unwrap();
                }
                let fault = add(&*target, vec![numbered(1)]).await.unwrap_err();
                assert!(fault.is_closed() && fault.to_string().contains("run the same command again"), "{fault}");
            });
            let other = desk.copy("nobody", to).unwrap_err();
            assert!(other.is_closed(), "another copy does not mix with it: {other}");
            assert_eq!(desk.copy(from, to), Ok((3, 10)), "after {steps} steps");
            let whole = block_on(all_jobs(&*desk.open(to))).unwrap();
            assert_eq!(whole.len(), 10);
            assert!(block_on(add(&*desk.open(to), vec![numbered(1)])).is_ok());
        }
    }
}

#[test]
fn a_backup_is_a_ledger_as_it_was_while_others_worked_with_it() {
    for (name, backup) in [("a", "backup"), ("b.db", "backup.db")] {
        let desk = Desk::new();
        let store = desk.open(name);
        block_on(add(&*store, (0..500).map(numbered).collect())).unwrap();
        let worker = desk.open(name);
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let working = std::thread::spawn(move || {
            let mut done = 0;
            while !is_stopped.load(std::sync::atomic::Ordering::Relaxed) {
                let jobs = block_on(claim(&*worker, "r", 1)).unwrap();
                for job in jobs {
                    block_on(settle(&*worker, &job, Outcome::Succeeded(None))).unwrap();
                    done += 1;
                }
            }
            done
        });
        block_on(store.backup(desk.path(backup))).unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        working.join().unwrap();
        let copy = desk.open(backup);
        assert_eq!(block_on(violations(&*copy)).unwrap(), Vec::<String>::new());
        assert_eq!(block_on(all_jobs(&*copy)).unwrap().len(), 500);
        assert!(block_on(add(&*copy, vec![numbered(1)])).is_ok(), "it can be worked with");
        let fault = block_on(store.backup(desk.path(backup))).unwrap_err();
        assert!(fault.is_invalid() && fault.to_string().contains("writes over nothing"), "{fault}");
        let nowhere =
            block_on(store.backup(desk.path("no/such/folder/x"))).map(|()| desk.path("no/such/folder/x").exists());
        assert_eq!(nowhere, Ok(true), "folders are made");
    }
}

/// What a target could not take is told before the source is closed, and by whom.
#[test]
fn a_ledger_that_contradicts_itself_is_not_copied() {
    let cases = [
        ("{\"items\": [{\"id\": \"x\", \"payload\": 1}]}", "queues/Q.json", "differs from"),
        ("{\"items\": [{\"id\": \"q-item-abc-00001\", \"payload\": 1}]}", "queues/r.json", "the number 1 of a job"),
        ("{\"items\": [{\"id\": \"x\", \"payload\": 1, \"lane\": \"l\", \"status\": \"claimed\", \"leaseExpiresAt\": \"2000-01-01T00:00:00Z\"},
            {\"id\": \"y\", \"payload\": 1, \"lane\": \"l\", \"status\": \"claimed\", \"leaseExpiresAt\": \"2000-01-01T00:00:00Z\"}]}",
            "queues/l.json", "has 2 heads"),
    ];
    for (text, path, expected) in cases {
        let desk = Desk::new();
        let source = desk.open("a");
        let first = Namespace::job_queue("q").unwrap();
        block_on(source.enqueue(Enqueue { namespace: first, jobs: vec![numbered(1)] })).unwrap();
        let text = if path == "queues/r.json" { text.replace("q-item", "r-item") } else { text.to_owned() };
        std::fs::write(desk.path("a").join(path), text).unwrap();
        let fault = desk.copy("a", "b.db").unwrap_err();
        assert!(fault.is_closed() && fault.to_string().contains(expected), "{fault}");
        assert!(block_on(add(&*source, vec![numbered(2)])).is_ok(), "the source is as it was");
        assert!(block_on(add(&*desk.open("b.db"), vec![numbered(2)])).is_ok(), "the target, too");
    }
}

/// A copy that is given up lets the source go on; one that was finished can't be given up.
#[test]
fn an_unfinished_copy_can_be_given_up() {
    use acta_core::store::give_up_copy;
    for (from, to) in [("a", "b.db"), ("c.db", "d")] {
        let desk = Desk::new();
        let (source, target) = (desk.open(from), desk.open(to));
        block_on(add(&*source, vec![numbered(1)])).unwrap();
        block_on(async {
            target.mark(Mark::Arriving { from: from.into() }).await.unwrap();
            source.mark(Mark::Leaving { to: to.into() }).await.unwrap();
            target.import(source.export(None).await.unwrap()).await.unwrap();
            target.import(source.export(Some(queue())).await.unwrap()).await.unwrap();
            // Nobody opens a half copy by taking its mark back.
            target.mark(Mark::Withdrawn).await.unwrap();
            assert!(add(&*target, vec![numbered(2)]).await.unwrap_err().is_closed());
            give_up_copy(&*source, Some(&*target), (from, to)).await.unwrap();
            add(&*source, vec![numbered(2)]).await.unwrap();
            assert!(add(&*target, vec![numbered(2)]).await.unwrap_err().is_closed());
        });
        let fault = block_on(give_up_copy(&*source, None, (from, to))).unwrap_err();
        assert!(fault.is_closed() && fault.to_string().contains("nothing to give up"), "{fault}");
        desk.copy(from, "whole").unwrap();
        // Neither while the jobs are there, nor when they have gone on from there.
        for _ in 0..2 {
            let fault = block_on(give_up_copy(&*source, Some(&*desk.open("whole")), (from, "whole"))).unwrap_err();
            assert!(fault.is_closed() && fault.to_string().contains("is no unfinished copy"), "{fault}");
            desk.copy("whole", "further.db").unwrap();
        }
        assert!(block_on(add(&*source, vec![numbered(3)])).unwrap_err().is_closed());
    }
}

/// What only files can say of an item is said by every substrate after a copy.
#[test]
fn an_item_that_was_written_by_hand_is_the_same_after_a_copy() {
    let desk = Desk::new();
    let items = r#"{"items": [
        {"id": "a", "payload": 1, "status": "pending", "claimedBy": "r", "claimedAt": "2026-01-01T00:00:00Z", "lostLeases": 2},
        {"id": "b", "payload": 1, "status": "pending", "state": "waiting",
            "wait": {"signal": "go", "until": "2027-01-01T00:00:00Z"}},
        {"id": "c", "payload": 1, "status": "successful", "paused": true, "note": "mine"}]}"#;
    std::fs::create_dir_all(desk.path("a/transactions")).unwrap();
    std::fs::write(desk.path("a/transactions/q.json"), items).unwrap();
    let seen = |name: &str| {
        let item = |found: acta_core::store::Found| acta_core::Item::new(&found.namespace, &found.job);
        let jobs = block_on(all_jobs(&*desk.open(name))).unwrap();
        jobs.into_iter().map(item).map(|item| serde_json::to_string(&item).unwrap()).collect::<Vec<_>>()
    };
    let before = seen("a");
    desk.copy("a", "b.db").unwrap();
    assert_eq!(seen("b.db"), before);
}

/// Two backups to the same place: one is there, whole, and the other is told so.
#[test]
fn of_two_backups_to_one_place_one_is_refused() {
    for (name, backup) in [("a", "backup"), ("b.db", "backup.db")] {
        let desk = Desk::new();
        block_on(add(&*desk.open(name), (0..2_000).map(numbered).collect())).unwrap();
        let path = desk.path(backup);
        let back_up = |store: Arc<dyn Store>| {
            let path = path.clone();
            std::thread::spawn(move || block_on(store.backup(path)))
        };
        let done = [desk.open(name), desk.open(name)].map(back_up).map(|thread| thread.join().unwrap());
        assert!(done.iter().any(Result::is_ok), "{done:?}");
        assert!(done.iter().all(|done| done.as_ref().err().is_none_or(Error::is_invalid)), "{done:?}");
        assert_eq!(block_on(all_jobs(&*desk.open(backup))).unwrap().len(), 2_000);
    }
}
