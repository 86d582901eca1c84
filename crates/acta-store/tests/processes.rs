//! Several processes on one ledger, and processes that die.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use acta_core::store::{Action, Dedup, NewJob, Operation, Outcome};
use acta_core::{Clock, JobId, ManualClock, Random, Seeded, State, Store, SystemClock};
use acta_testkit::block_on;
use acta_testkit::invariants::{all_jobs, violations};
use common::child::{
    acknowledge, acknowledgements, add, claim, label, numbered, open, open_at, queue, role, settle, spawn,
};

/// What a child does; in the parent nothing.
#[test]
fn child() {
    let Some((role, ledger)) = role() else { return };
    if role == "everything" {
        return block_on(everything(Path::new(&ledger)));
    }
    let store = open(Path::new(&ledger));
    block_on(async {
        match role.as_str() {
            "claim" => claim_five_hundred(store.as_ref()).await,
            "mix" => mix(store.as_ref()).await,
            "toil" => toil(store).await,
            other => panic!("no role {other}"),
        }
    });
}

fn child_as(role: &str, ledger: &Path) -> Child {
    spawn("child", role, ledger, None)
}

async fn claim_five_hundred(store: &dyn Store) {
    let robot = format!("robot-{}", std::process::id());
    for _ in 0..500 {
        let jobs = claim(store, &robot, 1).await.unwrap();
        acknowledge(jobs[0].identity.id.as_str());
    }
}

async fn mix(store: &dyn Store) {
    for number in 0..60 {
        add(store, vec![numbered(number), numbered(number)]).await.unwrap();
        for job in claim(store, "mixer", 2).await.unwrap() {
            settle(store, &job, Outcome::Succeeded(None)).await.unwrap();
        }
    }
    acknowledge("mixed");
}

/// Works without end, from several tasks at once, and tells what was acknowledged.
async fn toil(store: Arc<dyn Store>) {
    let work = |task: u64| {
        let store = Arc::clone(&store);
        async move {
            let mut random = Seeded::new(task + 100 * u64::from(std::process::id()));
            loop {
                toil_once(store.as_ref(), &mut random).await;
            }
        }
    };
    let ((), (), (), ()) = tokio::join!(work(0), work(1), work(2), work(3));
}

async fn toil_once(store: &dyn Store, random: &mut Seeded) {
    let number = random.next_u64();
    let lane = (!number.is_multiple_of(3)).then(|| label(&format!("lane {}", number % 7)));
    let job = |lane| NewJob { lane, ..numbered(usize::try_from(number % 256).unwrap_or_default()) };
    for id in add(store, vec![job(lane.clone()), job(lane)]).await.unwrap() {
        acknowledge(&format!("added {id}"));
    }
    for (index, job) in claim(store, "toiler", 3).await.unwrap().into_iter().enumerate() {
        let outcome = match (number >> 8) % 4 + index as u64 {
            0 => Outcome::Release,
            1 => Outcome::Snooze(job.identity.created_at),
            2 => Outcome::Cancelled,
            _ => Outcome::Succeeded(None),
        };
        let state = settle(store, &job, outcome).await.unwrap();
        acknowledge(&format!("settled {} {state}", job.identity.id));
    }
}

/// Every kind of write once, so that every failpoint is passed.
async fn everything(ledger: &Path) {
    use acta_core::store::{Define, Hold, News, Report};
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let store = open_at(ledger, Arc::clone(&clock) as Arc<dyn Clock>);
    let store = store.as_ref();
    let keyed = |key: &str, while_live| Dedup { key: label(key), while_live };
    let name = acta_core::Name::new("name", "report").unwrap();
    let definition = acta_core::Definition {
        retention: Some(acta_core::Span::from_millis(0)),
        ..acta_core::Definition::new(name.clone())
    };
    store.define(Define::Job(definition)).await.unwrap();
    store.define(Define::Queue(queue(), acta_core::QueueSettings::default())).await.unwrap();
    let jobs = vec![
        NewJob { lane: Some(label("L")), dedup: Some(keyed("a", false)), ..numbered(0) },
        NewJob { lane: Some(label("L")), dedup: Some(keyed("b", true)), ..numbered(1) },
        NewJob { name: Some(name), dedup: Some(keyed("c", false)), ..numbered(2) },
        numbered(3),
    ];
    let ids = add(store, jobs).await.unwrap();
    for id in &ids {
        acknowledge(&format!("added {id}"));
    }
    let act = async |id: &JobId, action: Action| {
        let operation = Operation { namespace: queue(), ids: vec![id.clone()], action, actor: None, reason: None };
        store.operate(operation).await.unwrap().remove(0).unwrap();
    };
    let signal = acta_core::Name::new("signal", "go").unwrap();
    act(&ids[3], Action::Signal { name: signal.clone(), payload: acta_core::Json::null() }).await;
    for job in claim(store, "r", 3).await.unwrap() {
        let claimant = acta_core::store::Claimant::fence(job.standing.fence);
        let report =
            |news| Report { namespace: queue(), id: job.identity.id.clone(), claimant: claimant.clone(), news };
        store.report(report(News::Started)).await.unwrap();
        store.report(report(News::Step { name: "s".into(), value: acta_core::Json::null() })).await.unwrap();
        let outcome = if job.identity.id == ids[3] {
            Outcome::Wait { until: None, signal: Some(signal.clone()) }
        } else {
            Outcome::Succeeded(Some(acta_core::Json::null()))
        };
        let state = settle(store, &job, outcome).await.unwrap();
        acknowledge(&format!("settled {} {state}", job.identity.id));
    }
    act(&ids[1], Action::Cancel { force: false }).await;
    act(&ids[1], Action::Restart).await;
    for paused in [true, false] {
        for lane in [None, Some(label("L"))] {
            let hold = Hold { namespace: queue(), lane, paused, actor: None, reason: None };
            store.hold(hold).await.unwrap();
        }
    }
    act(&ids[1], Action::Cancel { force: false }).await;
    // From here on it may be gone.
    acknowledge(&format!("pruned {}", ids[2]));
    assert_eq!(store.prune(queue(), 10).await.unwrap().0, 1);
    clock.advance_ms(91 * 86_400_000);
    for id in [&ids[0], &ids[1]] {
        acknowledge(&format!("pruned {id}"));
    }
    assert_eq!(store.prune(queue(), 10).await.unwrap(), (2, 2));
}

/// What was acknowledged is there, and nothing contradicts itself.
fn check(ledger: &Path, acknowledged: &[String]) {
    let store = &*open(ledger);
    block_on(async {
        assert_eq!(violations(store).await.unwrap(), Vec::<String>::new());
        let gone: BTreeSet<&str> = acknowledged.iter().filter_map(|line| line.strip_prefix("pruned ")).collect();
        for line in acknowledged {
            let words: Vec<&str> = line.split(' ').collect();
            if gone.contains(words[1]) {
                continue;
            }
            let id = JobId::new(words[1]).unwrap();
            let found = store.job(id).await.unwrap_or_else(|fault| panic!("{line}: {fault}"));
            let state = found.job.standing.state;
            if words[0] == "settled" && ["succeeded", "cancelled"].contains(&words[2]) {
                assert_eq!(state.word(), words[2], "{line}");
            }
        }
    });
}

/// A ledger of each kind that processes share, by the name of its file or folder.
const SQLITE: &str = "acta.db";
const FILES: &str = "ledger";

/// Eight processes, five hundred claims each: every job is handed out once, none is left.
fn eight_processes_claim_each_job_once(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join(kind);
    let store = &*open(&ledger);
    block_on(add(store, (0..4_000).map(numbered).collect())).unwrap();
    let mut children: Vec<Child> = (0..8).map(|_| child_as("claim", &ledger)).collect();
    let mut claimed = Vec::new();
    for child in &mut children {
        claimed.extend(acknowledgements(child));
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(claimed.len(), 4_000);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), 4_000, "each once");
    let jobs = block_on(all_jobs(store)).unwrap();
    assert!(jobs.iter().all(|found| found.job.standing.state == State::Claimed && found.job.standing.fence == 1));
}

#[test]
fn c037_eight_processes_claim_each_job_of_a_database_once() {
    eight_processes_claim_each_job_once(SQLITE);
}

#[test]
fn c037_eight_processes_claim_each_job_of_a_file_once() {
    eight_processes_claim_each_job_once(FILES);
}

/// Claims, enqueues and settles from eight processes: nobody is told that the ledger is locked.
fn eight_processes_never_meet_a_locked_ledger(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join(kind);
    // Each child opens the ledger that does not exist yet.
    let mut children: Vec<Child> = (0..8).map(|_| child_as("mix", &ledger)).collect();
    for child in &mut children {
        assert_eq!(acknowledgements(child).collect::<Vec<_>>(), ["mixed"]);
        assert!(child.wait().unwrap().success());
    }
    let store = &*open(&ledger);
    block_on(async {
        assert_eq!(all_jobs(store).await.unwrap().len(), 8 * 120);
        assert_eq!(violations(store).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn c048_eight_processes_never_meet_a_locked_database() {
    eight_processes_never_meet_a_locked_ledger(SQLITE);
}

#[test]
fn c048_eight_processes_never_meet_a_locked_file() {
    eight_processes_never_meet_a_locked_ledger(FILES);
}

/// Killed at random points, with operations in flight: nothing acknowledged is missing, nothing is twice.
fn two_hundred_kills_lose_nothing(kind: &str) {
    let mut random = Seeded::new(u64::from(std::process::id()));
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join(kind);
        let mut all = Vec::new();
        for kill in 0..20 {
            let mut child = child_as("toil", &ledger);
            let mut told = acknowledgements(&mut child);
            let most = usize::try_from(random.next_u64() % 60).unwrap();
            all.extend(told.by_ref().take(most));
            child.kill().unwrap();
            // What it said before it died was acknowledged, too.
            all.extend(told);
            child.wait().unwrap();
            assert!(ledger.exists() || kill == 0, "round {round}");
        }
        check(&ledger, &all);
    }
}

#[test]
fn c044_two_hundred_kills_lose_nothing_of_a_database() {
    two_hundred_kills_lose_nothing(SQLITE);
}

#[test]
fn c044_two_hundred_kills_lose_nothing_of_files() {
    two_hundred_kills_lose_nothing(FILES);
}

/// The lock of whoever died is nobody's, and one that is held by whoever does not move delays the others once.
#[test]
fn c042_a_lock_that_was_left_behind_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("acta.db");
    let mut child = child_as("toil", &ledger);
    let mut told = acknowledgements(&mut child);
    told.next();
    child.kill().unwrap();
    child.wait().unwrap();
    let store = &*open(&ledger);
    let turn = std::fs::File::open(folder.path().join("acta.db-turn")).unwrap();
    turn.lock().unwrap();
    let start = std::time::Instant::now();
    for number in 0..20 {
        block_on(add(store, vec![numbered(number)])).unwrap();
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "once, not at every commit");
}

/// The lock of a killed process goes with it; nobody waits for it.
#[test]
fn c042_a_lock_of_files_that_was_left_behind_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join(FILES);
    let mut child = child_as("toil", &ledger);
    let mut told = acknowledgements(&mut child);
    told.next();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ledger.join(".lock").exists(), "the file stays; it is no lock by itself");
    let start = std::time::Instant::now();
    block_on(add(&*open(&ledger), vec![numbered(1)])).unwrap();
    assert!(start.elapsed() < std::time::Duration::from_secs(2));
}

/// Dead between any two steps of any write: the store opens, and what was acknowledged is there.
#[cfg(feature = "failpoints")]
fn a_death_between_the_steps_of_a_write_leaves_all_or_nothing_of_it(kind: &str, points: &[&str], most: usize) {
    for point in points {
        for count in 1..=most {
            let folder = tempfile::tempdir().unwrap();
            let ledger = folder.path().join(kind);
            let mut child = spawn("child", "everything", &ledger, Some(&format!("{point}:{count}")));
            let acknowledged: Vec<String> = acknowledgements(&mut child).collect();
            let survived = child.wait().unwrap().success();
            assert!(!survived || count > 1, "{point} was never passed");
            check(&ledger, &acknowledged);
            if survived {
                break;
            }
        }
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn a_death_between_the_steps_of_a_write_leaves_all_or_nothing_of_it_in_a_file() {
    let points = ["write", "fsync", "rename", "folder"];
    a_death_between_the_steps_of_a_write_leaves_all_or_nothing_of_it(FILES, &points, 60);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_death_between_the_steps_of_a_write_leaves_all_or_nothing_of_it_in_a_database() {
    let points = [
        "migrate",
        "begin",
        "commit",
        "committed",
        "save",
        "insert_job",
        "insert_standing",
        "add_namespace",
        "add_name",
        "save_definition",
        "save_settings",
        "save_key",
        "remove_key",
        "add_lane",
        "save_lane",
        "remove_lane",
        "add_count",
        "take_count",
        "save_last_number",
        "save_detail",
        "delete_detail",
        "record",
        "push_signal",
        "save_step",
        "save_namespace_paused",
        "delete_signals",
        "delete_steps",
        "delete_standing",
        "delete_job",
        "delete_events",
        "pop_signal",
        "remove_expired_keys",
    ];
    a_death_between_the_steps_of_a_write_leaves_all_or_nothing_of_it(SQLITE, &points, 9);
}

/// Whoever waits for work hears of what another process puts in, though nothing of this one tells it.
#[test]
fn a_change_through_another_store_of_the_ledger_wakes() {
    let folder = tempfile::tempdir().unwrap();
    for ledger in ["acta.db", "files"] {
        let path = folder.path().join(ledger);
        let (one, other) = (open(&path), open(&path));
        block_on(add(other.as_ref(), vec![numbered(0)])).unwrap();
        let seen = block_on(one.changed(queue(), None)).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(block_on(one.changed(queue(), Some(seen)))));
        block_on(add(other.as_ref(), vec![numbered(1)])).unwrap();
        let number = receiver.recv_timeout(Duration::from_secs(20)).expect(ledger);
        assert_ne!(number.unwrap(), seen, "{ledger}");
    }
}
