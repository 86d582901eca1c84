//! A ledger that is out of reach when a job ends.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use acta_core::State;
use common::{Desk, wait};

/// The disk that can be full, as the ledger's own tests use it.
fn disk(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../acta-store/tests/power/disk.c");
    let library = folder.join("libdisk.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .args(["-ldl", "-lpthread"])
        .status();
    assert!(built.unwrap().success());
    library
}

/// A job that waits for the file `go`, on a disk with so much room.
fn start(desk: &Desk, library: &Path, room: u64) -> Child {
    desk.shell("echo started; until test -e go; do sleep 0.02; done; echo done", "");
    let mut command = desk.command(&["run", "job.json"]);
    command
        .env("LD_PRELOAD", library)
        .env("DISK_FOLDER", desk.path().join("root"))
        .env("DISK_SPACE", room.to_string())
        .env("DISK_FREED", desk.path().join("freed"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether a child says this before it ends.
fn says(child: &mut Child, text: &str) -> bool {
    BufReader::new(child.stderr.as_mut().unwrap()).lines().any(|line| line.unwrap().contains(text))
}

/// A job that has started on a disk with hardly any room left: less than a settle takes up.
fn started_with_hardly_any_room(library: &Path) -> (Desk, Child) {
    for room in (100_000..2_000_000).step_by(6_000) {
        let desk = Desk::new();
        let mut child = start(&desk, library, room);
        if says(&mut child, "started") {
            return (desk, child);
        }
        assert_eq!(wait(child).code, Some(7), "a full disk is told as such");
    }
    panic!("it never started");
}

/// The settle is tried again until it is taken: the job does not run twice, and nothing is left claimed.
#[test]
fn c058_a_settle_is_repeated_while_the_ledger_can_t_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (desk, mut child) = started_with_hardly_any_room(&disk(folder.path()));
    desk.write("go", "");
    assert!(says(&mut child, "not settled yet"));
    desk.write("freed", "");
    let ended = wait(child);
    assert!(ended.code == Some(0) && ended.out.starts_with("completed work-item-"), "{ended:?}");
    let job = &desk.jobs()[0].job;
    assert_eq!((job.standing.state, job.standing.fence), (State::Succeeded, 1));
}
