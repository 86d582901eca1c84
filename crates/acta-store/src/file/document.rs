//! A namespace as a text: the items as everybody sees them, and beside them what else the ledger keeps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use acta_core::book::{Common, Contents};
use acta_core::history::Entry;
use acta_core::rows::{KeyRecord, Lane, Queue};
use acta_core::{Item, Job, JobId, Label, Namespace, QueueSettings, State, Timestamp};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::aside::{Aside, MOST_NUMBER};
use super::line;
use super::mend;
use super::text::{self, Fields, Flaw, Members};

/// A deduplication key's record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    item: JobId,
    state: State,
    digest: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// What a file says, and what had to be completed in it, item by item: after a change by hand, or of an unfinished one.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) contents: Contents,
    pub(super) mended: Vec<String>,
}

/// Reads the file of `namespace`. New numbers, for items that have none, come from `common`.
pub(super) fn read(namespace: &Namespace, common: &mut Common, now: Timestamp, text: &str) -> Result<Read, Flaw> {
    let mut members: Fields<'_> = text::read(text, text)?;
    let Some(items) = members.take(text, "items")? else {
        return Err(Flaw::at(text, text.trim_start(), "there are no \"items\""));
    };
    let items_part = items;
    let items: Vec<Fields<'_>> = text::read(text, items_part)?;
    let start_of = |index: usize| {
        let parts: Vec<&RawValue> = text::read(text, items_part).unwrap_or_default();
        parts.get(index).map_or(items_part, |part| part.get())
    };
    let mut mended = Vec::new();
    let paused = members.read(text, "paused")?.unwrap_or_default();
    let settings: QueueSettings = members.read(text, "settings")?.unwrap_or_default();
    let paused_lanes: BTreeSet<Label> = members.read(text, "pausedLanes")?.unwrap_or_default();
    let mut asides: BTreeMap<JobId, Aside> = members.read(text, "ledger")?.unwrap_or_default();
    let keys: BTreeMap<Label, Key> = members.read(text, "keys")?.unwrap_or_default();
    let events = members.take(text, "events")?;
    let mut contents = Contents::new(Queue { namespace: namespace.clone(), settings, paused });
    contents.foreign.of_queue = members.into_unknown();

    let mut read = Vec::with_capacity(items.len());
    let mut rows: HashMap<JobId, u64> = HashMap::with_capacity(items.len());
    for (index, mut fields) in items.into_iter().enumerate() {
        let Some(id) = fields.read::<JobId>(text, "id")? else {
            return Err(Flaw::at(text, start_of(index), "the item has no \"id\""));
        };
        if rows.insert(id.clone(), 0).is_some() {
            return Err(Flaw::at(text, start_of(index), format!("the id {id} is there twice")));
        }
        let aside = asides.remove(&id).unwrap_or_default();
        if [aside.row, aside.place].into_iter().flatten().any(|number| number > MOST_NUMBER) {
            return Err(Flaw::at(
                text,
                start_of(index),
                format!("a number of {id} in \"ledger\" is out of all bounds"),
            ));
        }
        let job = line::read(&contents.queue, text, &id, &mut fields, &aside, now, &mut mended)?;
        read.push((job, aside, fields.into_unknown()));
    }
    mended.extend(mend::number(namespace, common, read.iter_mut().map(|(job, aside, _)| (job, &*aside))));
    let mut jobs = Vec::with_capacity(read.len());
    for (job, aside, unknown) in read {
        if let Some(row) = rows.get_mut(&job.identity.id) {
            *row = job.row;
        }
        if !unknown.is_empty() {
            contents.foreign.of_jobs.insert(job.row, unknown);
        }
        if !aside.signals.is_empty() {
            contents.signals.insert(job.row, aside.signals);
        }
        if !aside.steps.is_empty() {
            contents.steps.insert(job.row, aside.steps);
        }
        jobs.push((job.row, job));
    }
    contents.jobs = jobs.into_iter().collect();
    contents.history = history(text, events, &rows)?;
    for (key, record) in keys {
        let Key { item: id, state, digest, expires_at } = record;
        contents.keys.insert(key, KeyRecord { id, state, digest, expires_at });
    }
    mended.extend(mend::keys(&mut contents, &rows));
    mended.extend(mend::lanes(&mut contents, &paused_lanes, now));
    Ok(Read { contents, mended })
}

fn history(text: &str, events: Option<&str>, rows: &HashMap<JobId, u64>) -> Result<Vec<Entry>, Flaw> {
    let mut history = Vec::new();
    let parts: Vec<&RawValue> = events.map_or(Ok(Vec::new()), |events| text::read(text, events))?;
    for part in parts {
        let mut fields: Fields<'_> = text::read(text, part.get())?;
        let id: Option<JobId> = fields.read(text, "item")?;
        let mut entry: Entry = text::read(text, part.get())?;
        entry.row = match &id {
            None => None,
            Some(id) => match rows.get(id) {
                Some(row) => Some(*row),
                // Of an item that somebody has taken out of the file.
                None => continue,
            },
        };
        history.push(entry);
    }
    Ok(history)
}

fn written(record: &KeyRecord) -> Key {
    let KeyRecord { id, state, digest, expires_at } = record.clone();
    Key { item: id, state, digest, expires_at }
}

/// The text of a namespace.
pub(super) fn write(contents: &Contents) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(&Whole(contents))?;
    text.push(b'\n');
    Ok(text)
}

struct Whole<'a>(&'a Contents);

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    item: Item,
    #[serde(flatten)]
    unknown: Members<'a>,
}

#[derive(Serialize)]
struct Event<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a JobId>,
    #[serde(flatten)]
    entry: &'a Entry,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Contents { queue, jobs, lanes, keys, history, signals, steps, foreign } = self.0;
        let mut in_order: Vec<&Job> = jobs.values().collect();
        in_order.sort_by_key(|job| job.standing.place);
        let mut map = serializer.serialize_map(None)?;
        let line = |job: &&Job| Line {
            item: Item::new(&queue.namespace, job),
            unknown: Members(foreign.of_jobs.get(&job.row).map_or(&[], Vec::as_slice)),
        };
        map.serialize_entry("items", &in_order.iter().map(line).collect::<Vec<_>>())?;
        if queue.paused {
            map.serialize_entry("paused", &true)?;
        }
        if queue.settings != QueueSettings::default() {
            map.serialize_entry("settings", &queue.settings)?;
        }
        let paused: BTreeSet<&Label> =
            lanes.values().filter(|lane: &&Lane| lane.paused).map(|lane| &lane.name).collect();
        if !paused.is_empty() {
            map.serialize_entry("pausedLanes", &paused)?;
        }
        let mut asides = BTreeMap::new();
        for job in in_order {
            let mut aside = line::aside(queue, job);
            aside.signals = signals.get(&job.row).cloned().unwrap_or_default();
            aside.steps = steps.get(&job.row).cloned().unwrap_or_default();
            if aside != Aside::default() {
                asides.insert(&job.identity.id, aside);
            }
        }
        if !asides.is_empty() {
            map.serialize_entry("ledger", &asides)?;
        }
        let keys: BTreeMap<&Label, Key> = keys.iter().map(|(key, record)| (key, written(record))).collect();
        if !keys.is_empty() {
            map.serialize_entry("keys", &keys)?;
        }
        if !history.is_empty() {
            let id_of = |row: u64| jobs.get(&row).map(|job| &job.identity.id);
            let events = history.iter().map(|entry| Event { item: entry.row.and_then(id_of), entry });
            map.serialize_entry("events", &events.collect::<Vec<_>>())?;
        }
        for (name, value) in &foreign.of_queue {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
