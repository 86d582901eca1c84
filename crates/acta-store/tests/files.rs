//! The ledger's file: damaged, foreign, locked, shared.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use acta_core::store::{Dedup, NewJob, Outcome};
use acta_core::{Error, Item, State};
use acta_store::SqliteStore;
use acta_store::sqlite::Options;
use acta_testkit::block_on;
use acta_testkit::invariants::violations;
use common::child::{add, claim, label, numbered, open, queue, settle};
use rusqlite::Connection;

fn try_open(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(path, Options::default())
}

/// A ledger with jobs, closed.
fn ledger(folder: &Path, jobs: usize) -> std::path::PathBuf {
    let path = folder.join("acta.db");
    let store = &*open(&path);
    block_on(add(store, (0..jobs).map(numbered).collect())).unwrap();
    path
}

/// What can't be read is not taken for empty, and is not written over.
#[test]
fn c038_a_damaged_file_is_refused_and_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = {
        let path = ledger(folder.path(), 20);
        Connection::open(&path).unwrap().pragma_update(None, "wal_checkpoint", "truncate").unwrap();
        std::fs::read(path).unwrap()
    };
    let mut garbled = whole.clone();
    garbled[..16].copy_from_slice(b"this is no ledge");
    let half = whole[..=whole.len() / 2].to_vec();
    for (what, bytes) in [("text", b"{\"items\": []}".repeat(100)), ("a garbled head", garbled), ("half a file", half)]
    {
        let path = folder.path().join("damaged.db");
        std::fs::write(&path, &bytes).unwrap();
        let outcome = try_open(&path).map(|store| block_on(async { violations(&store).await }));
        let fault = match outcome {
            Ok(Ok(found)) => panic!("{what}: opened, and found {found:?}"),
            Ok(Err(fault)) | Err(fault) => fault,
        };
        assert!(matches!(fault, Error::Unreadable { .. }), "{what}: {fault}");
        assert!(fault.to_string().contains("damaged.db"), "{what}: {fault}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}");
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_file(folder.path().join("damaged.db-wal"));
    }
}

/// One payload that somebody broke stops none of the others, and shows itself.
#[test]
fn c041_a_damaged_row_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = ledger(folder.path(), 11);
    let broken = Connection::open(&path).unwrap().execute("UPDATE acta_jobs SET payload = '{oops' WHERE job = 1", []);
    assert_eq!(broken, Ok(1));
    let back_off = Connection::open(&path).unwrap().execute("UPDATE acta_jobs SET backoff = '{oops' WHERE job = 1", []);
    assert!(back_off.is_err(), "what is no JSON does not get in");
    let by_hand = Connection::open(&path).unwrap().execute("UPDATE acta_standing SET state = 'x' WHERE job = 2", []);
    assert!(by_hand.is_err(), "a wrong type does not get in");
    let store = &*open(&path);
    block_on(async {
        let jobs = claim(store, "r", 20).await.unwrap();
        assert_eq!(jobs.len(), 11);
        let item = serde_json::to_string(&Item::new(&queue(), &jobs[0])).unwrap();
        assert!(item.contains(r#""payload":"{oops""#), "{item}");
        for job in &jobs {
            assert_eq!(settle(store, job, Outcome::Succeeded(None)).await, Ok(State::Succeeded));
        }
    });
}

/// Somebody holds the file: a write waits, and a read does not.
#[test]
fn c049_a_lock_held_by_somebody_else_is_waited_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = ledger(folder.path(), 1);
    let store = &*open(&path);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (begun, has_begun) = channel();
    let (release, is_released) = channel::<()>();
    let holder = std::thread::spawn(move || {
        begun.send(()).unwrap();
        let _ = is_released.recv_timeout(Duration::from_secs(2));
        other.execute_batch("COMMIT").unwrap();
    });
    has_begun.recv().unwrap();
    block_on(async {
        let read = violations(store).await;
        assert_eq!(read, Ok(Vec::new()), "a reader does not wait");
        let added = add(store, vec![numbered(1)]).await;
        assert_eq!(added.map(|ids| ids.len()), Ok(1));
    });
    drop(release);
    holder.join().unwrap();
}

/// Fifty at once with the same key: one is created, all others are told its id.
#[test]
fn c053_c056_of_concurrent_duplicates_one_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = ledger(folder.path(), 0);
    // Two stores in one process stand for two processes: each has a writer of its own.
    let stores = [open(&path), open(&path)];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    runtime.block_on(async {
        for round in 0..20 {
            let key = label(&format!("key {round}"));
            let mut tasks = Vec::new();
            for task in 0..50 {
                let (store, key) = (Arc::clone(&stores[task % 2]), key.clone());
                let job = NewJob { dedup: Some(Dedup { key, while_live: false }), ..numbered(task) };
                let enqueue = acta_core::store::Enqueue { namespace: queue(), jobs: vec![job] };
                tasks.push(tokio::spawn(async move { store.enqueue(enqueue).await }));
            }
            let mut added = Vec::new();
            for task in tasks {
                added.push(task.await.unwrap().unwrap().remove(0));
            }
            assert_eq!(added.iter().filter(|added| added.created).count(), 1);
            assert!(added.iter().all(|other| other.id == added[0].id));
        }
    });
}

/// A schema that is newer, foreign or half there is refused, with what to do, and nothing is changed.
#[test]
fn a_schema_that_is_not_ours_is_refused() {
    let cases = [
        ("INSERT INTO acta_migrations VALUES (99, 'later', 0)", "use a newer release"),
        ("UPDATE acta_migrations SET name = 'other'", "another product's"),
        ("DROP TABLE acta_migrations", "half there"),
        ("DELETE FROM acta_migrations", "half there"),
    ];
    for (sql, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = ledger(folder.path(), 1);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let fault = try_open(&path).unwrap_err();
        assert!(matches!(fault, Error::Unreadable { .. }) && fault.to_string().contains(expected), "{fault}");
    }
}

/// A ledger lives in an application's own file, beside its tables.
#[test]
fn a_ledger_can_share_a_file_with_other_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE orders (id INTEGER); CREATE TABLE migrations (v)")
        .unwrap();
    let store = &*open(&path);
    block_on(async {
        add(store, vec![numbered(1)]).await.unwrap();
        assert_eq!(claim(store, "r", 1).await.unwrap().len(), 1);
    });
}

/// What can't be opened says where and why.
#[test]
fn a_place_where_no_file_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let fault = try_open(&file.join("acta.db")).unwrap_err();
    assert!(fault.is_unavailable() && fault.to_string().contains("file"), "{fault}");
    let fault = try_open(folder.path()).unwrap_err();
    assert!(fault.is_unavailable() || matches!(fault, Error::Unreadable { .. }), "{fault}");
}
