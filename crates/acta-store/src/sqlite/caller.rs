//! Enqueues in a transaction of the caller's, on a connection that may be any driver's.
//!
//! To enqueue, the rules look at little: a namespace, a few names, lanes and keys. That is read into a book, the rules run on it as
//! on every book, and what they have changed is written back, all by the caller's connection. SQLite has one writer, and from the
//! first statement on that is the caller: what was read stays true until it is written, and for everybody else all of it happens
//! with the caller's commit.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::PoisonError;

use acta_core::book::{Common, Contents};
use acta_core::job::LaneNumber;
use acta_core::rows::{KeyRecord, Lane, Queue, Rows};
use acta_core::store::{Enqueue, Enqueued, NewJob, Openness};
use acta_core::{Book, Definition, Error, Job, JobId, Label, Name, Namespace, Result, Rules, State, Timestamp};

use super::codec::{self, Cell};
use super::connection::{Statement, statement};
use super::migrate;
use super::session::World;
use super::standings::Added;
use super::vitals::flow_cells;

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
}

/// A caller's connection.
pub(super) trait Hand {
    /// Runs a statement; its rows.
    fn ask(
        &mut self,
        statement: Statement,
        values: &[Cell<'_>],
    ) -> impl Future<Output = Result<Vec<Vec<Value>>>> + Send;
}

/// Adds jobs, all or none. The caller undoes what an error leaves behind.
///
/// `definition` is registered with them, unless the ledger knows it already.
pub(super) async fn enqueue(
    hand: &mut impl Hand,
    (path, world): (&Path, &World),
    enqueue: &Enqueue,
    definition: Option<&Definition>,
) -> Result<Vec<Enqueued>> {
    let mut page = Page::read(hand, path, enqueue, definition).await?;
    let answers = {
        // Nobody panics while holding it, and a half-used source of random numbers is as good as any.
        let mut random = world.random.lock().unwrap_or_else(PoisonError::into_inner);
        Rules::new(&mut page.book, world.clock.now(), random.as_mut()).enqueue(&enqueue.jobs)?
    };
    page.write(hand).await?;
    Ok(answers)
}

/// What an enqueue looks at, and what was there before it.
struct Page {
    book: Book,
    ns: i64,
    last_number: u64,
    /// The numbers of the names that the ledger has seen.
    names: BTreeMap<Name, i64>,
    /// To be registered.
    definition: Option<Definition>,
    lanes: BTreeSet<LaneNumber>,
    keys: BTreeMap<Label, KeyRecord>,
}

impl Page {
    async fn read(
        hand: &mut impl Hand,
        path: &Path,
        enqueue: &Enqueue,
        definition: Option<&Definition>,
    ) -> Result<Self> {
        // First of all: a transaction that has read can't wait for another writer any more.
        let held = one(hand, statement!("hold_last_number"), &[]).await;
        check_file(hand, path).await?;
        let mut common = Common::default();
        common.last_number = whole(&held?, 0)?;
        check_ledger(hand, path).await?;
        let last_number = common.last_number;
        let (ns, queue) = namespace(hand, &enqueue.namespace).await?;
        let mut contents = Contents::new(queue);
        let mut page_names = BTreeMap::new();
        let mut definitions = BTreeMap::new();
        for name in distinct(&enqueue.jobs, |job| job.name.as_ref()) {
            let Some(row) = first(hand, statement!("name"), &[Cell::Text(name.as_str())]).await? else { continue };
            let existing = Name::trusted(text(&row, 1)?);
            common.add_name(&existing);
            page_names.insert(existing, number(&row, 0)?);
            if let Value::Text(told) = cell(&row, 2)? {
                let known: Definition = serde_json::from_str(told).map_err(|fault| unreadable(name.as_str(), fault))?;
                definitions.insert(known.name.clone(), known);
            }
        }
        let definition = definition.filter(|definition| definitions.get(&definition.name) != Some(definition)).cloned();
        if let Some(definition) = &definition {
            definitions.insert(definition.name.clone(), definition.clone());
        }
        for job in &enqueue.jobs {
            let of_name = job.name.as_ref().and_then(|name| definitions.get(name)).and_then(|of| of.lane.as_ref());
            let Some(name) = job.lane.as_ref().or(of_name) else { continue };
            if contents.lanes.values().all(|lane| lane.name != *name)
                && let Some(lane) = lane(hand, ns, name).await?
            {
                contents.lanes.insert(lane.number, lane);
            }
        }
        for key in distinct(&enqueue.jobs, |job| job.dedup.as_ref().map(|dedup| &dedup.key)) {
            if let Some(record) = key_record(hand, ns, key).await? {
                contents.keys.insert(key.clone(), record);
            }
        }
        for definition in definitions.into_values() {
            common.define(definition)?;
        }
        let (lanes, keys) = (contents.lanes.keys().copied().collect(), contents.keys.clone());
        let book = Book::open(contents, common);
        Ok(Self { book, ns, last_number, names: page_names, definition, lanes, keys })
    }

    /// Writes what has changed.
    async fn write(mut self, hand: &mut impl Hand) -> Result<()> {
        let ns = Cell::Integer(self.ns);
        let last = self.book.common().last_number;
        if last != self.last_number {
            hand.ask(statement!("save_last_number"), &[Cell::Integer(last.cast_signed())]).await?;
        }
        let tallies = self.book.tallies()?;
        let minutes = self.book.changed_vitals().map(|(vitals, _)| vitals.minutes).unwrap_or_default();
        let is_new = |name: &&Name| !self.names.contains_key(*name);
        let new_names: Vec<Name> = self.book.common().names().filter(is_new).cloned().collect();
        for name in new_names {
            let text = [Cell::Text(name.as_str())];
            hand.ask(statement!("add_name"), &text).await?;
            let row = one(hand, statement!("name"), &text).await?;
            self.names.insert(name, number(&row, 0)?);
        }
        if let Some(definition) = &self.definition {
            let told = serde_json::to_string(definition).map_err(|fault| unreadable("a definition", fault))?;
            let of = self.names.get(&definition.name).copied().unwrap_or_default();
            hand.ask(statement!("save_definition"), &[Cell::Integer(of), Cell::Text(&told)]).await?;
        }
        let contents = self.book.into_contents();
        // The book has given new lanes numbers of its own.
        let mut numbers = BTreeMap::new();
        for (of_book, changed) in &contents.lanes {
            let mut kept = *of_book;
            if !self.lanes.contains(of_book) {
                hand.ask(statement!("add_lane"), &[ns, Cell::Text(changed.name.as_str())]).await?;
                let made = lane(hand, self.ns, &changed.name).await?;
                kept = made.map(|lane| lane.number).ok_or_else(|| unreadable("a new lane", "is not there"))?;
            }
            numbers.insert(*of_book, kept);
            let values = [kept.0.cast_signed(), changed.live.cast_signed(), i64::from(changed.paused)];
            hand.ask(statement!("save_lane"), &values.map(Cell::Integer)).await?;
        }
        for mut job in contents.jobs.into_values() {
            job.standing.lane = job.standing.lane.and_then(|number| numbers.get(&number).copied());
            insert(hand, job, self.ns, &self.names).await?;
        }
        for (key, record) in contents.keys.iter().filter(|(key, record)| self.keys.get(*key) != Some(record)) {
            hand.ask(statement!("save_key"), &codec::key_cells(self.ns, key, record)).await?;
        }
        for (tally, count) in tallies {
            let values = [Cell::Integer(codec::counter(tally)), Cell::Integer(count.cast_signed())];
            hand.ask(statement!("add_count"), &[ns, values[0], values[1]]).await?;
        }
        for (minute, flow) in minutes {
            hand.ask(statement!("add_minute"), &flow_cells(self.ns, minute, flow)).await?;
        }
        Ok(())
    }
}

async fn insert(hand: &mut impl Hand, job: Job, ns: i64, names: &BTreeMap<Name, i64>) -> Result<()> {
    let name = job.identity.name.as_ref().and_then(|name| names.get(name)).copied().unwrap_or_default();
    let added = Added::new(job, ns, name);
    hand.ask(statement!("insert_job"), &added.identity_cells()).await?;
    hand.ask(statement!("insert_standing"), &added.standing_cells()).await?;
    Ok(())
}

/// Refuses a connection to another file: the jobs would be where nobody of this ledger looks.
async fn check_file(hand: &mut impl Hand, path: &Path) -> Result<()> {
    let row = one(hand, statement!("main_file"), &[]).await?;
    let file = match cell(&row, 0)? {
        Value::Text(file) => file.as_str(),
        Value::Null | Value::Integer(_) => "",
    };
    // Which of its names a file was opened by does not matter.
    let same = |path: &Path| std::fs::canonicalize(path).ok();
    if same(Path::new(file)).is_some_and(|file| Some(file) == same(path)) {
        return Ok(());
    }
    let why = format!("is not the ledger's file, {}: one transaction is of one file", path.display());
    Err(Error::invalid("connection to", if file.is_empty() { ":memory:" } else { file }, why))
}

/// Refuses a ledger that is of another release by now, and one that takes no writes.
async fn check_ledger(hand: &mut impl Hand, path: &Path) -> Result<()> {
    let row = one(hand, statement!("newest_version"), &[]).await?;
    let (version, ours) = (number(&row, 0)?, migrate::newest());
    if version != ours {
        return Err(unreadable("schema", format!("is version {version}, not the {ours} known here")));
    }
    let row = one(hand, statement!("openness"), &[]).await?;
    let openness: Openness = serde_json::from_str(text(&row, 0)?).map_err(|fault| unreadable("acta_ledger", fault))?;
    openness.check(path.display())
}

/// The namespace, which is made if it is not there.
async fn namespace(hand: &mut impl Hand, namespace: &Namespace) -> Result<(i64, Queue)> {
    let path = namespace.to_string();
    let found = first(hand, statement!("namespace"), &[Cell::Text(&path)]).await?;
    let row = if let Some(row) = found {
        row
    } else {
        hand.ask(statement!("add_namespace"), &[Cell::Text(&path)]).await?;
        one(hand, statement!("namespace"), &[Cell::Text(&path)]).await?
    };
    let existing = text(&row, 1)?;
    if existing != path {
        return Err(Error::CaseDiffers { what: "queue", given: path, existing: existing.to_owned() });
    }
    let settings = serde_json::from_str(text(&row, 2)?).map_err(|fault| unreadable("acta_namespaces", fault))?;
    Ok((number(&row, 0)?, Queue { namespace: namespace.clone(), settings, paused: number(&row, 3)? != 0 }))
}

async fn lane(hand: &mut impl Hand, ns: i64, name: &Label) -> Result<Option<Lane>> {
    let found = first(hand, statement!("lane"), &[Cell::Integer(ns), Cell::Text(name.as_str())]).await?;
    let Some(row) = found else { return Ok(None) };
    let (number_of, live) = (LaneNumber(whole(&row, 0)?), whole(&row, 1)?);
    Ok(Some(Lane { number: number_of, name: name.clone(), live, paused: number(&row, 2)? != 0 }))
}

/// Who holds a key. The row of a live holder is not read: its record says the state that it is in now, as that of a pruned one
/// does, which is all that the rules ask for.
async fn key_record(hand: &mut impl Hand, ns: i64, key: &Label) -> Result<Option<KeyRecord>> {
    let found = first(hand, statement!("key"), &[Cell::Integer(ns), Cell::Text(key.as_str())]).await?;
    let Some(row) = found else { return Ok(None) };
    let id = JobId::trusted(text(&row, 0)?);
    let digest = number(&row, 2)?;
    let (state, expires_at) = match cell(&row, 3)? {
        Value::Integer(at) => (number(&row, 1)?, Timestamp::from_millis(*at)),
        Value::Null | Value::Text(_) => {
            let row = id.row().map_or(Cell::Null, |row| Cell::Integer(row.cast_signed()));
            let holder = one(hand, statement!("state"), &[row, Cell::Text(id.as_str())]).await?;
            (number(&holder, 0)?, Timestamp::from_millis(i64::MAX))
        }
    };
    let state = State::from_code(state).ok_or_else(|| unreadable(id.as_str(), "is in no state"))?;
    Ok(Some(KeyRecord { id, state, digest, expires_at: Some(expires_at) }))
}

fn distinct<'j, T: Ord>(jobs: &'j [NewJob], of: impl Fn(&'j NewJob) -> Option<&'j T>) -> BTreeSet<&'j T> {
    jobs.iter().filter_map(of).collect()
}

async fn first(hand: &mut impl Hand, statement: Statement, values: &[Cell<'_>]) -> Result<Option<Vec<Value>>> {
    Ok(hand.ask(statement, values).await?.into_iter().next())
}

async fn one(hand: &mut impl Hand, statement: Statement, values: &[Cell<'_>]) -> Result<Vec<Value>> {
    first(hand, statement, values).await?.ok_or_else(|| unreadable(statement.name, "has no row"))
}

fn unreadable(what: &str, why: impl std::fmt::Display) -> Error {
    Error::Unreadable { place: format!("the ledger: {what}"), why: why.to_string() }
}

fn cell(row: &[Value], column: usize) -> Result<&Value> {
    row.get(column).ok_or_else(|| unreadable("a row", "is too short"))
}

fn number(row: &[Value], column: usize) -> Result<i64> {
    match cell(row, column)? {
        Value::Integer(number) => Ok(*number),
        other => Err(unreadable("a row", format!("has {other:?} where a number belongs"))),
    }
}

fn whole(row: &[Value], column: usize) -> Result<u64> {
    number(row, column).map(i64::cast_unsigned)
}

fn text(row: &[Value], column: usize) -> Result<&str> {
    match cell(row, column)? {
        Value::Text(text) => Ok(text),
        other => Err(unreadable("a row", format!("has {other:?} where text belongs"))),
    }
}
