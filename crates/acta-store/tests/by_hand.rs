//! Files that people read, compare and mend: what a file looks like, what a change by hand does, what a broken one says.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acta_core::store::{
    Action, Dedup, Enqueue, Hold, JobFilter, NewJob, Operation, Outcome, QueueFilter, Settlement, Wave,
};
use acta_core::{Error, Item, JobId, Json, ManualClock, Namespace, Seeded, State, Store, Timestamp};
use acta_store::FileStore;
use acta_store::file::Options;
use acta_testkit::block_on;
use acta_testkit::desk::START;
use acta_testkit::invariants::violations;
use common::child::{add, claim, label, numbered, queue, settle};

/// A ledger of files on a standing clock, with the file of the tests' queue.
struct Ledger {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: FileStore,
}

impl Ledger {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let options = Options { clock: Arc::clone(&clock) as _, random: Some(Box::new(Seeded::new(1))) };
        let store = FileStore::open(folder.path(), options).unwrap();
        Self { folder, clock, store }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("transactions/q.json")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// As an editor does it: the file is written anew in its place.
    fn edit(&self, change: impl FnOnce(String) -> String) {
        let text = self.text();
        let changed = change(text.clone());
        assert_ne!(text, changed, "the edit did nothing");
        std::fs::write(self.path(), changed).unwrap();
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn add(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        block_on(add(&self.store, jobs)).unwrap()
    }

    fn claim(&self, count: usize) -> Vec<acta_core::Job> {
        block_on(claim(&self.store, "robot-01", count)).unwrap()
    }

    fn item(&self, id: &JobId) -> String {
        let found = block_on(self.store.job(id.clone())).unwrap();
        serde_json::to_string(&Item::new(&found.namespace, &found.job)).unwrap()
    }

    fn is_sound(&self) {
        assert_eq!(block_on(violations(&self.store)).unwrap(), Vec::<String>::new());
    }
}

fn json(text: &str) -> Json {
    Json::new(text).unwrap()
}

#[test]
fn a_file_reads_like_the_contract_says() {
    let ledger = Ledger::new();
    let run = NewJob::new(json(r#"{ "jobId": "job-q-m2x9-3a11" }"#));
    let keyed = NewJob {
        key: Some(label("INV-1042")),
        lane: Some(label("north")),
        dedup: Some(Dedup { key: label("d1"), while_live: true }),
        ..numbered(2)
    };
    let second = NewJob { lane: Some(label("north")), ..numbered(3) };
    ledger.add(vec![run, keyed, second]);
    ledger.clock.advance_ms(1_000);
    let jobs = ledger.claim(2);
    block_on(settle(&ledger.store, &jobs[1], Outcome::Succeeded(Some(json("[1,  2]"))))).unwrap();
    let pause = Hold { namespace: queue(), lane: Some(label("north")), paused: true, actor: None, reason: None };
    block_on(ledger.store.hold(pause)).unwrap();
    insta::assert_snapshot!(ledger.text());
}

#[test]
fn what_is_written_is_read_as_the_same_and_written_as_the_same() {
    let ledger = Ledger::new();
    ledger.add(vec![NewJob { lane: Some(label("a")), ..numbered(1) }, numbered(2)]);
    let jobs = ledger.claim(2);
    block_on(settle(&ledger.store, &jobs[0], Outcome::Release)).unwrap();
    let text = ledger.text();
    let again = FileStore::open(ledger.folder.path(), Options::default()).unwrap();
    let pause = |paused| Hold { namespace: queue(), lane: None, paused, actor: None, reason: None };
    block_on(again.hold(pause(true))).unwrap();
    block_on(again.hold(pause(false))).unwrap();
    let items = |text: &str| text.split("\"events\"").next().unwrap().to_owned();
    assert_eq!(items(&text), items(&ledger.text()));
}

#[test]
fn an_item_that_was_moved_is_where_it_was_moved_to() {
    let ledger = Ledger::new();
    let ids = ledger.add((0..3).map(numbered).collect());
    // The last item to the front.
    ledger.edit(|text| {
        let (head, rest) = text.split_once('[').unwrap();
        let (items, tail) = rest.rsplit_once(']').unwrap();
        let mut items: Vec<&str> = items.split("},").map(|item| item.trim().trim_end_matches('}')).collect();
        let last = items.pop().unwrap();
        items.insert(0, last);
        format!("{head}[{}}}]{tail}", items.join("},"))
    });
    let order: Vec<JobId> = ledger.claim(3).into_iter().map(|job| job.identity.id).collect();
    assert_eq!(order, [ids[2].clone(), ids[0].clone(), ids[1].clone()]);
    ledger.is_sound();
}

#[test]
fn an_item_that_was_moved_to_another_queue_belongs_to_that_one() {
    let ledger = Ledger::new();
    let ids = ledger.add((0..2).map(numbered).collect());
    let second = ids[1].as_str().to_owned();
    let mut moved = String::new();
    ledger.edit(|text| {
        let start = text.find(&format!("{{\n      \"id\": \"{second}\"")).unwrap();
        let end = start + text[start..].find("\n    }").unwrap() + 6;
        moved = text[start..end].to_owned();
        let before = text[..start].trim_end().trim_end_matches(',');
        format!("{before}{}", &text[end..])
    });
    ledger.put("transactions/other.json", &format!("{{\"items\": [{moved}]}}"));
    let found = block_on(ledger.store.job(ids[1].clone())).unwrap();
    assert_eq!(found.namespace.to_string(), "transactions/other");
    assert_eq!(ledger.claim(5).len(), 1);
    let other = acta_core::store::Claim::one(Namespace::transaction_queue("other").unwrap(), label("r"));
    block_on(ledger.store.claim(other)).unwrap();
    assert!(ledger.item(&ids[1]).contains("\"queue\":\"other\""));
}

#[test]
fn a_payload_and_fields_that_were_changed_or_added_are_kept_to_the_byte() {
    let ledger = Ledger::new();
    let ids = ledger.add(vec![numbered(7), numbered(8)]);
    ledger.edit(|text| {
        text.replacen(
            "\"payload\": 7,",
            "\"payload\": {\"b\":1e400,  \"b\": 9223372036854775808},\n  \"note\": \"ask\\u0041 Ann\",",
            1,
        )
        .replacen("{\n  \"items\"", "{\n  \"$comment\": [ 1,2 ],\n  \"items\"", 1)
    });
    for job in ledger.claim(1) {
        assert_eq!(job.identity.payload.as_str(), "{\"b\":1e400,  \"b\": 9223372036854775808}");
        block_on(settle(&ledger.store, &job, Outcome::Succeeded(None))).unwrap();
    }
    let text = ledger.text();
    for kept in ["{\"b\":1e400,  \"b\": 9223372036854775808}", "\"note\": \"ask\\u0041 Ann\"", "\"$comment\": [ 1,2 ]"]
    {
        assert!(text.contains(kept), "{kept} is gone:\n{text}");
    }
    assert!(ledger.item(&ids[0]).contains("\"status\":\"successful\""));
    ledger.is_sound();
}

#[test]
fn a_status_that_was_changed_is_where_the_item_stands() {
    let ledger = Ledger::new();
    let ids = ledger
        .add(vec![NewJob { lane: Some(label("a")), ..numbered(1) }, NewJob { lane: Some(label("a")), ..numbered(2) }]);
    let job = ledger.claim(1).remove(0);
    block_on(settle(&ledger.store, &job, Outcome::Cancelled)).unwrap();
    assert_eq!(ledger.claim(5).len(), 1, "the second one had its turn");
    // The cancelled one is to be done after all; the claimed one is to be taken back.
    ledger.edit(|text| {
        text.replace("\"system-exception\"", "\"pending\"")
            .replace("\"status\": \"claimed\"", "\"status\": \"pending\"")
    });
    let again = ledger.claim(5);
    assert_eq!(again.iter().map(|job| &job.identity.id).collect::<Vec<_>>(), [&ids[0]], "one lane, in order");
    assert_eq!(again[0].standing.fence, 2, "an older claim stays fenced off");
    ledger.is_sound();
}

#[test]
fn items_that_were_written_or_taken_out_by_hand_are_taken_as_they_are() {
    let ledger = Ledger::new();
    let items = r#"{"items": [{"id": "first", "payload": {"n": 1}},
        {"id": "q-item-m2x9-4f1c", "queue": "elsewhere", "status": "pending", "payload": null, "attempts": 1, "dedupKey": "k"},
        {"id": "later", "payload": 3, "runAt": "2026-10-03T10:00:00.000Z"}]}"#;
    ledger.put("transactions/q.json", items);
    let jobs = ledger.claim(5);
    let seen: Vec<(&str, u32, u32)> =
        jobs.iter().map(|job| (job.identity.id.as_str(), job.standing.attempts, job.standing.max_attempts)).collect();
    assert_eq!(seen, [("first", 1, 3), ("q-item-m2x9-4f1c", 2, 3)]);
    let twin = NewJob { dedup: Some(Dedup { key: label("k"), while_live: false }), ..numbered(1) };
    let told = block_on(ledger.store.enqueue(Enqueue { namespace: queue(), jobs: vec![twin] })).unwrap();
    assert_eq!((told[0].id.as_str(), told[0].created), ("q-item-m2x9-4f1c", false));
    let later = JobId::new("later").unwrap();
    assert!(ledger.item(&later).contains("\"state\":\"scheduled\""));
    ledger.edit(|text| {
        let start = text.find("{\n      \"id\": \"first\"").unwrap();
        let end = start + text[start..].find("\n    },").unwrap() + 7;
        format!("{}{}", &text[..start], text[end..].trim_start())
    });
    ledger.edit(|text| {
        let start = text.find("{\n      \"id\": \"q-item-m2x9-4f1c\"").unwrap();
        let end = start + text[start..].find("\n    },").unwrap() + 7;
        format!("{}{}", &text[..start], text[end..].trim_start())
    });
    let twin = NewJob { dedup: Some(Dedup { key: label("k"), while_live: false }), ..numbered(1) };
    let told = block_on(ledger.store.enqueue(Enqueue { namespace: queue(), jobs: vec![twin] })).unwrap();
    assert!(told[0].created, "its key went with it");
    let first = JobId::new("first").unwrap();
    assert!(block_on(ledger.store.job(first)).unwrap_err().is_not_found());
    ledger.clock.advance_ms(3_600_000);
    let claimed: Vec<JobId> = ledger.claim(5).into_iter().map(|job| job.identity.id).collect();
    assert_eq!(claimed, [later, told[0].id.clone()]);
    ledger.is_sound();
}

/// What is wrong with a file is named by line and column, the file keeps its bytes, and other queues go on.
#[test]
fn c038_c064_a_broken_file_stops_its_own_queue_and_keeps_its_bytes() {
    let broken: [(&[u8], &str); 15] = [
        (b"", "line 1, column 1"),
        (b"{\"items\": [\n  {\"id\": \"a\", \"payl", "line 2, column 19"),
        (b"{\"items\": [\n  {\"id\": \"a\" \"payload\": 1}]}", "line 2, column 14"),
        (b"{\"items\": [{\"id\": \"a\", \"payload\": 01}]}", "line 1, column 36"),
        (b"[]", "line 1, column"),
        (b"{\"item\": []}", "line 1, column 1: there are no \"items\""),
        (b"{\"items\": {}}", "line 1, column 11"),
        (b"{\"items\": [\n\n  {\"payload\": 1}]}", "line 3, column 3: the item has no \"id\""),
        (b"{\"items\": [{\"id\": \"a\"}]}", "the item a has no \"payload\""),
        (b"{\"items\": [{\"id\": \"../a\", \"payload\": 1}]}", "line 1, column 19"),
        (
            b"{\"items\": [{\"id\": \"a\", \"payload\": 1},\n{\"id\": \"a\", \"payload\": 1}]}",
            "line 2, column 1: the id a is there twice",
        ),
        (
            b"{\"items\": [{\"id\": \"a\", \"payload\": 1,\n \"status\": \"done\"}]}",
            "line 2, column 12: status \"done\" is none of",
        ),
        (
            b"{\"items\": [{\"id\": \"a\", \"payload\": 1, \"status\": \"pending\", \"status\": \"claimed\"}]}",
            "\"status\" is there twice",
        ),
        (b"{\"items\": [{\"id\": \"a\", \"payload\": 1, \"claimedAt\": \"yesterday\"}]}", "claimedAt: "),
        (b"{\"items\": [\n\"\xff\"]}", "line 2, column 2: this is not UTF-8"),
    ];
    for (bytes, expected) in broken {
        let ledger = Ledger::new();
        ledger.add(vec![numbered(1)]);
        ledger.put("transactions/other.json", "{\"items\": [{\"id\": \"good\", \"payload\": 1}]}");
        std::fs::write(ledger.path(), bytes).unwrap();
        let what = String::from_utf8_lossy(bytes);
        let fault = block_on(claim(&ledger.store, "r", 1)).unwrap_err();
        assert!(matches!(fault, Error::Unreadable { .. }), "{what}: {fault}");
        let said = fault.to_string();
        assert!(
            said.starts_with(&format!("{}: line ", ledger.path().display())) && said.contains(expected),
            "{what}: {said}"
        );
        assert!(block_on(add(&ledger.store, vec![numbered(2)])).is_err());
        assert_eq!(std::fs::read(ledger.path()).unwrap(), bytes, "{what}");

        let page = block_on(ledger.store.jobs(JobFilter { limit: 10, ..JobFilter::default() })).unwrap();
        assert_eq!(page.jobs.len(), 1, "the other queue is listed");
        assert_eq!(page.unreadable, [fault], "and this one is named");
        let overview = block_on(ledger.store.queues(QueueFilter::default())).unwrap();
        assert_eq!((overview.queues.len(), overview.unreadable.len()), (1, 1));
        let good = block_on(ledger.store.job(JobId::new("good").unwrap())).unwrap();
        assert_eq!(good.job.standing.state, State::Ready);
    }
}

/// Nothing of a new file is in place before all of it is on the disk, and what was left half is not taken for anything.
#[test]
fn what_a_death_has_left_beside_a_file_is_no_queue() {
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    ledger.put("transactions/.q.json.new", "{\"items\": [{\"id\": \"half");
    ledger.put("transactions/notes.txt", "mine");
    ledger.put("queues/UPPER lower.json", "no queue has such a name");
    assert_eq!(ledger.claim(1).len(), 1);
    let overview = block_on(ledger.store.queues(QueueFilter::default())).unwrap();
    assert_eq!((overview.queues.len(), overview.unreadable.len()), (1, 0));
}

/// The common file may be lost: numbers go on after the highest that is in use.
#[test]
fn numbers_go_on_where_the_file_that_counts_them_is_gone() {
    let ledger = Ledger::new();
    let first = ledger.add((0..3).map(numbered).collect());
    std::fs::remove_file(ledger.folder.path().join(".ledger.json")).unwrap();
    let more = ledger.add(vec![numbered(4)]);
    assert!(more[0].row() > first[2].row());
    ledger.is_sound();
}

/// However many items a wave has, its file is read once and written once.
#[test]
fn a_wave_is_one_read_and_one_write() {
    let ledger = Ledger::new();
    ledger.add((0..600).map(numbered).collect());
    let counted = |work: &dyn Fn(&FileStore)| {
        // Another process's store has not seen the file yet.
        let store = FileStore::open(ledger.folder.path(), Options::default()).unwrap();
        work(&store);
        let traffic = block_on(store.traffic()).unwrap();
        (traffic.reads, traffic.writes)
    };
    let claims = |store: &FileStore| assert_eq!(block_on(claim(store, "r", 500)).unwrap().len(), 500);
    assert_eq!(counted(&claims), (1, 1));
    let jobs =
        block_on(ledger.store.jobs(JobFilter { status: Some("claimed".into()), limit: 500, ..JobFilter::default() }));
    let done = |id: JobId| Settlement {
        id,
        claimant: acta_core::store::Claimant::fence(1),
        outcome: Outcome::Succeeded(None),
    };
    let settlements: Vec<Settlement> =
        jobs.unwrap().jobs.into_iter().map(|found| done(found.job.identity.id)).collect();
    let settles = |store: &FileStore| {
        let wave = Wave { namespace: queue(), settlements: settlements.clone() };
        assert!(block_on(store.settle(wave)).unwrap().into_iter().all(|answer| answer.is_ok()));
    };
    assert_eq!(counted(&settles), (1, 1));
    let nothing = |store: &FileStore| assert_eq!(block_on(store.recover(queue())).unwrap(), 0);
    assert_eq!(counted(&nothing), (1, 0), "what changes nothing writes nothing");
}

/// A file keeps its permissions; one that can't be written says so and loses nothing.
#[test]
fn a_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    std::fs::set_permissions(ledger.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
    ledger.claim(1);
    assert_eq!(std::fs::metadata(ledger.path()).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_folder_where_none_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let open = |path: &Path| FileStore::open(path, Options::default());
    assert!(open(&file).unwrap_err().is_unavailable());
    let below = open(&file.join("ledger")).unwrap();
    let fault = block_on(add(&below, vec![numbered(1)])).unwrap_err();
    assert!(fault.is_unavailable() && fault.to_string().contains("file"), "{fault}");
    assert!(block_on(below.queues(QueueFilter::default())).unwrap().queues.is_empty(), "what is not there is empty");
}

/// An operator's act on an item in a lane that was reordered by hand: the lane goes on from where it is now.
#[test]
fn a_lane_whose_order_was_changed_goes_on_in_the_new_order() {
    let ledger = Ledger::new();
    let in_lane = |number| NewJob { lane: Some(label("a")), ..numbered(number) };
    let ids = ledger.add((0..3).map(in_lane).collect());
    let cancel = Operation {
        namespace: queue(),
        ids: vec![ids[0].clone()],
        action: Action::Cancel { force: false },
        actor: None,
        reason: None,
    };
    block_on(ledger.store.operate(cancel)).unwrap();
    ledger.edit(|text| {
        let swap = |text: String, one: &JobId, other: &JobId| {
            text.replace(one.as_str(), "x-x").replace(other.as_str(), one.as_str()).replace("x-x", other.as_str())
        };
        swap(text, &ids[1], &ids[2])
    });
    for expected in [&ids[2], &ids[1]] {
        let job = ledger.claim(5).remove(0);
        assert_eq!(&job.identity.id, expected);
        block_on(settle(&ledger.store, &job, Outcome::Succeeded(None))).unwrap();
    }
    ledger.is_sound();
}

/// Two processes number hand-written items at the same time: no number is given twice.
#[test]
fn numbers_that_nobody_has_written_down_are_given_to_nobody_else() {
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    ledger.put("transactions/hand.json", r#"{"items": [{"id": "by-hand", "payload": 1}]}"#);
    let by_hand = JobId::new("by-hand").unwrap();
    // This one looks, and gives a number in its mind; the other one gives numbers in earnest.
    assert!(ledger.item(&by_hand).contains("\"id\":\"by-hand\""));
    let other = FileStore::open(ledger.folder.path(), Options::default()).unwrap();
    block_on(add(&other, vec![numbered(2), numbered(3)])).unwrap();
    let hand = Namespace::transaction_queue("hand").unwrap();
    block_on(ledger.store.claim(acta_core::store::Claim::one(hand, label("r")))).unwrap();
    ledger.is_sound();
}

/// An item that was set to claimed by hand lapses like any other, whoever looks how often.
#[test]
fn a_claim_by_hand_lapses() {
    let ledger = Ledger::new();
    ledger.put("transactions/q.json", r#"{"items": [{"id": "h", "payload": 1, "status": "claimed"}]}"#);
    for minute in 0..5 {
        let store = FileStore::open(
            ledger.folder.path(),
            Options { clock: Arc::clone(&ledger.clock) as _, random: Some(Box::new(Seeded::new(2))) },
        );
        assert!(block_on(claim(&store.unwrap(), "r", 1)).unwrap().is_empty(), "minute {minute}");
        ledger.clock.advance_ms(60_000);
    }
    assert_eq!(ledger.claim(1).len(), 1, "after five minutes");
}

#[test]
fn a_key_that_was_held_while_live_is_free_after_an_end_by_hand() {
    let ledger = Ledger::new();
    let keyed = || NewJob { dedup: Some(Dedup { key: label("k"), while_live: true }), ..numbered(1) };
    ledger.add(vec![keyed()]);
    ledger.edit(|text| text.replace("\"pending\"", "\"successful\""));
    let told = block_on(ledger.store.enqueue(Enqueue { namespace: queue(), jobs: vec![keyed()] })).unwrap();
    assert!(told[0].created);
    ledger.is_sound();
}

/// A clock that lets something happen while a verb is at work: the file is changed after it was read.
#[derive(Debug)]
struct Meanwhile {
    path: PathBuf,
    asked: std::sync::atomic::AtomicUsize,
}

impl acta_core::Clock for Meanwhile {
    fn now(&self) -> Timestamp {
        // Once for the file, once for the verb.
        if self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            let text = std::fs::read_to_string(&self.path).unwrap();
            std::fs::write(&self.path, text.replace("\"payload\": 1", "\"payload\": \"edited\"")).unwrap();
        }
        Timestamp::from_millis(START)
    }
}

#[test]
fn an_edit_that_comes_in_the_midst_of_a_change_is_not_written_over() {
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    let clock = Meanwhile { path: ledger.path(), asked: 0.into() };
    let options = Options { clock: Arc::new(clock), random: Some(Box::new(Seeded::new(1))) };
    let store = FileStore::open(ledger.folder.path(), options).unwrap();
    let fault = block_on(claim(&store, "r", 1)).unwrap_err();
    assert!(fault.is_unavailable() && fault.to_string().contains("was changed by somebody else just now"), "{fault}");
    assert!(ledger.text().contains("\"payload\": \"edited\""));
    let job = block_on(claim(&store, "r", 1)).unwrap().remove(0);
    assert_eq!((job.identity.payload.as_str(), job.standing.fence), ("\"edited\"", 1));
}

/// What can't be written leaves the file as it was.
#[test]
fn a_change_that_can_t_be_written_is_not_done() {
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    let before = ledger.text();
    let in_the_way = ledger.folder.path().join("transactions/.q.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let fault = block_on(claim(&ledger.store, "r", 1)).unwrap_err();
    assert!(fault.is_unavailable() && fault.to_string().contains(".q.json.new"), "{fault}");
    assert_eq!(ledger.text(), before);
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(ledger.claim(1)[0].standing.fence, 1);
}

#[test]
fn a_linked_file_stays_a_link() {
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    let elsewhere = ledger.folder.path().join("elsewhere.txt");
    std::fs::rename(ledger.path(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, ledger.path()).unwrap();
    ledger.claim(1);
    assert!(ledger.path().is_symlink());
    assert!(std::fs::read_to_string(elsewhere).unwrap().contains("\"claimed\""));
}

#[test]
fn numbers_out_of_all_bounds_are_refused() {
    let ledger = Ledger::new();
    ledger.add(vec![numbered(1)]);
    ledger.put(".ledger.json", "{\"lastNumber\": 18446744073709551615}");
    let fault = block_on(add(&ledger.store, vec![numbered(2)])).unwrap_err();
    assert!(matches!(fault, Error::Unreadable { .. }) && fault.to_string().contains("lastNumber"), "{fault}");
    for (broken, expected) in [
        (r#"{"items": [{"id": "a", "payload": 1, "fence": 18446744073709551615}]}"#, "fence"),
        (
            r#"{"items": [{"id": "a", "payload": 1}], "ledger": {"a": {"place": 18446744073709551615}}}"#,
            "a number of a",
        ),
        (r#"{"items": [{"id": "a", "payload": 1, "lease": "0s"}]}"#, "is no time at all"),
        (r#"{"items": [{"id": "a", "payload": 1, "maxAttempts": 0}]}"#, "leaves no attempt"),
        (r#"{"items": [{}]}"#, "line 1, column 12: the item has no \"id\""),
    ] {
        let ledger = Ledger::new();
        ledger.put("transactions/q.json", broken);
        let fault = block_on(claim(&ledger.store, "r", 1)).unwrap_err();
        assert!(fault.to_string().contains(expected), "{fault}");
    }
}
