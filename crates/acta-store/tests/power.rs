//! A ledger whose power fails, or whose disk is full, keeps what it has acknowledged.
//!
//! The test runs itself once more as a child, with `power/disk.c` preloaded: a disk that records what is done to it, or
//! that has an end. From the record of the child's work it builds what the disk may hold after a power failure at any
//! point, opens the ledger there, and compares it with what the child was told before that point.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[path = "power/child.rs"]
mod child;
#[path = "power/disk.rs"]
mod disk;
#[path = "power/promises.rs"]
mod promises;
#[path = "power/stage.rs"]
mod stage;
#[path = "power/trace.rs"]
mod trace;

use std::fs::File;
use std::path::{Path, PathBuf};

use acta_core::Seeded;
use acta_store::sqlite::Synchronous;
use child::Kind;
use disk::{Disk, below};
use promises::Promises;
use stage::{Stage, files_in, open_again};
use trace::{Act, Record};

/// The ledger's file, below its folder.
const LEDGER: &str = "acta.db";
/// The folder of a ledger in files, likewise.
const FILES: &str = "ledger";
/// The file of what was acknowledged; where the disk is traced it lies beside the ledger, to be in the trace.
const NOTES: &str = "acknowledged";

/// Not a test: what the child does.
#[test]
fn child_workload() {
    match std::env::var("ACTA_POWER_CHILD").as_deref() {
        Ok("full") => child::work(Kind::Sqlite(Synchronous::Full)),
        Ok("normal") => child::work(Kind::Sqlite(Synchronous::Normal)),
        Ok("files") => child::work(Kind::Files),
        Ok("fill") => child::fill(Kind::Sqlite(Synchronous::Full)),
        Ok("fill files") => child::fill(Kind::Files),
        Ok(other) => panic!("there is no child {other:?}"),
        Err(_) => {}
    }
}

#[test]
fn a_power_failure_loses_nothing_acknowledged() {
    fail_power("full", Kind::Sqlite(Synchronous::Normal), |losses| losses == 0);
}

#[test]
fn a_power_failure_loses_nothing_acknowledged_of_files() {
    fail_power("files", Kind::Files, |losses| losses == 0);
}

/// The negative control: the same eye sees the losses of a ledger that does not wait for the disk. What is left of that
/// one is sound, and lacks only the last commits.
#[test]
fn a_power_failure_loses_the_last_commits_of_a_ledger_that_does_not_wait_for_the_disk() {
    fail_power("normal", Kind::Sqlite(Synchronous::Normal), |losses| losses > 0);
}

#[test]
fn c050_a_full_disk_fails_whole_groups_and_recovers() {
    // The first disk ends within the write-ahead log; the second while that log is brought into the database.
    for space in [1_000_000, 5_500_000] {
        fill_disk("fill", Kind::Sqlite(Synchronous::Normal), space);
    }
}

#[test]
fn c050_a_full_disk_leaves_files_as_they_were_and_they_recover() {
    fill_disk("fill files", Kind::Files, 1_000_000);
}

/// Lets the power of a child fail at many points; `is_expected` judges after how many of them something was lost.
fn fail_power(role: &str, kind: Kind, is_expected: fn(usize) -> bool) {
    let stage = Stage::new();
    let told = std::env::var_os("ACTA_POWER_TRACE").map(PathBuf::from);
    let trace = told.clone().unwrap_or_else(|| stage.path("trace"));
    if told.is_none() {
        let notes = stage.ledgers().join(NOTES);
        stage.start(role, &[("DISK_TRACE", trace.clone()), ("ACTA_POWER_NOTES", notes)]).finish();
    }
    let records = trace::read(&trace);
    if told.is_none() {
        assert_nothing_slipped_by(&records, &stage.ledgers());
    }
    let seed = std::env::var("ACTA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x5eed);
    println!("seed {seed}: ACTA_SEED={seed} lets the power fail as often and as badly again");
    let Findings { points, losses, wrong } = look_everywhere(kind, &records, &mut Seeded::new(seed));
    println!("{role}: {} records, {points} power failures, {} with losses", records.len(), losses.len());
    if !wrong.is_empty() || !is_expected(losses.len()) {
        stage.keep();
        panic!(
            "ACTA_POWER_TRACE={} ACTA_SEED={seed} shows it again, with {role:?}: of {points} power failures, {} lost something: \
             {losses:#?}; wrong are {wrong:#?}",
            trace.display(),
            losses.len(),
        );
    }
}

/// A trace that lacks something would prove nothing: played to its end, it makes the files that are really there.
fn assert_nothing_slipped_by(records: &[Record], folder: &Path) {
    let mut disk = Disk::default();
    for record in records {
        disk.play(record);
    }
    let (played, real) = (disk.as_seen(), files_in(folder));
    assert!(played.keys().eq(real.keys()), "{:?} are not {:?}", played.keys(), real.keys());
    for (name, content) in &played {
        assert!(*content == real[name], "{name} is not what its trace says");
    }
}

/// What was found after the power failures.
#[derive(Default)]
struct Findings {
    points: usize,
    /// A line for each failure that lost something acknowledged.
    losses: Vec<String>,
    /// What may never be, whatever a ledger promises.
    wrong: Vec<String>,
}

fn look_everywhere(kind: Kind, records: &[Record], random: &mut Seeded) -> Findings {
    let mut findings = Findings::default();
    let (mut disk, mut promises, mut played) = (Disk::default(), Promises::default(), 0);
    for point in points(records.len(), random) {
        for record in &records[played..point] {
            disk.play(record);
            if let (NOTES, Act::Write(_, line)) = (record.path.as_str(), &record.act) {
                promises.note(std::str::from_utf8(line).unwrap().trim_end());
            }
        }
        played = point;
        findings.points += 1;
        match open_again(kind, &disk.after_power_failure(random)) {
            Ok((jobs, wrong)) => {
                let wrong = wrong.into_iter().chain(promises.out_of_order(&jobs));
                findings.wrong.extend(wrong.map(|what| format!("after {point} records: {what}")));
                let lost = promises.lost(&jobs);
                if let Some(first) = lost.first() {
                    findings.losses.push(format!("after {point} records {}, like: {first}", lost.len()));
                }
            }
            Err(fault) => findings.wrong.push(format!("after {point} records it does not open: {fault}")),
        }
    }
    findings
}

/// After how many records the power fails: everywhere in a short trace, at random points of a long one, in order.
fn points(records: usize, random: &mut Seeded) -> Vec<usize> {
    let most = if std::env::var_os("ACTA_LONG").is_some() { 3_000 } else { 300 };
    if records <= most {
        return (0..=records).collect();
    }
    let mut points: Vec<usize> = (0..most).map(|_| below(random, records + 1)).collect();
    points.sort_unstable();
    points
}

/// Lets a child fill a disk of so many bytes, looks at its ledger, makes room, and looks again.
fn fill_disk(role: &str, kind: Kind, space: u64) {
    let stage = Stage::new();
    let (freed, notes) = (stage.path("freed"), stage.path(NOTES));
    let environment = [
        ("DISK_SPACE", PathBuf::from(space.to_string())),
        ("DISK_FREED", freed.clone()),
        ("ACTA_POWER_NOTES", notes.clone()),
    ];
    let mut child = stage.start(role, &environment);
    child.wait_for(child::FULL);
    // What a new process would find, had this one been killed now.
    let before = assert_exact(kind, &stage.ledgers(), &notes);
    File::create(freed).unwrap();
    child.go_on();
    child.finish();
    let after = assert_exact(kind, &stage.ledgers(), &notes);
    println!("{space} bytes: {before} jobs, then {after}");
    assert!(before > 0 && after > before, "{before} jobs, then {after}");
}

/// All that was acknowledged is there, and nothing that was refused; how many jobs that is.
fn assert_exact(kind: Kind, folder: &Path, notes: &Path) -> usize {
    let promises = Promises::read(&std::fs::read_to_string(notes).unwrap());
    let (jobs, mut wrong) = open_again(kind, &files_in(folder)).unwrap();
    wrong.extend(promises.lost(&jobs));
    wrong.extend(promises.surplus(&jobs));
    assert!(wrong.is_empty(), "{wrong:#?}");
    jobs.len()
}
