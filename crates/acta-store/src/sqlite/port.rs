//! Whole ledgers: copies, backups, and what is wrong with the file.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::Path;

use acta_core::book::{Common, Contents};
use acta_core::job::LaneNumber;
use acta_core::rows::{KeyRecord, Rows};
use acta_core::store::{Evidence, Finding, Mark, Parcel};
use acta_core::{Detail, Error, Job, JobId, Json, Label, Name, Namespace, Result, Timestamp};
use rusqlite::Row;

use super::codec;
use super::connection::{Db, Synchronous, statement};
use super::rows::SqlRows;
use super::session::{NamespaceNumber, Session, queue_columns};
use super::standings::insert_whole;
use crate::filesystem;

/// What the ledger keeps of a namespace, or only what all have in common.
pub(super) fn export(session: &mut Session<'_>, namespace: Option<&Namespace>) -> Result<Parcel> {
    let common = common(session)?;
    let Some(namespace) = namespace else { return Ok(Parcel { common, contents: None }) };
    let Some((ns, queue)) = session.namespace(namespace)? else {
        return Err(Error::not_found("queue", &namespace.to_string()));
    };
    let mut contents = Contents::new(queue.clone());
    let jobs = session.db.all(statement!("export_jobs"), [ns], codec::candidate)?;
    for (row, standing, identity) in jobs {
        let detail =
            if standing.has_detail { SqlRows::new(session, ns, queue.clone()).detail(row)? } else { Detail::default() };
        contents.jobs.insert(row, Job { row, identity, standing, detail });
    }
    let db = session.db;
    let lanes = db.all(statement!("export_lanes"), [ns], codec::lane)?;
    contents.lanes = lanes.into_iter().map(|lane| (lane.number, lane)).collect();
    contents.keys = db.all(statement!("export_keys"), [ns], key)?.into_iter().collect();
    contents.history = db.all(statement!("export_events"), [ns], codec::entry)?;
    let signal = |row: &Row<'_>| Ok((codec::number(row, 0)?, row.get::<_, String>(1)?, codec::json(row, 2)?));
    for (row, name, payload) in db.all(statement!("export_signals"), [ns], signal)? {
        contents.signals.entry(row).or_default().push_back((Name::trusted(name), payload));
    }
    for (row, name, value) in db.all(statement!("export_steps"), [ns], signal)? {
        contents.steps.entry(row).or_default().push((name, value));
    }
    let foreign = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?, codec::json(row, 2)?));
    for (row, name, value) in db.all(statement!("export_foreign"), [ns], foreign)? {
        let members = match row {
            None => &mut contents.foreign.of_queue,
            Some(row) => contents.foreign.of_jobs.entry(row.cast_unsigned()).or_default(),
        };
        members.push((name, value));
    }
    Ok(Parcel { common, contents: Some(contents) })
}

fn key(row: &Row<'_>) -> rusqlite::Result<(Label, KeyRecord)> {
    let record = KeyRecord {
        id: codec::id(row, 1)?,
        state: codec::state(row, 2)?,
        digest: row.get(3)?,
        expires_at: codec::instant(row, 4)?,
    };
    Ok((Label::trusted(row.get::<_, String>(0)?), record))
}

fn common(session: &mut Session<'_>) -> Result<Common> {
    let mut common = Common::default();
    common.openness = session.openness()?;
    common.last_number = session.last_number()?;
    let read = |row: &Row<'_>| row.get::<_, String>(0);
    for name in session.db.all(statement!("names"), [], read)? {
        let name = Name::trusted(name);
        if let Some((_, Some(definition))) = session.name(&name)? {
            common.define(definition)?;
        }
        common.add_name(&name);
    }
    Ok(common)
}

/// Takes a step of a copy.
pub(super) fn mark(session: &mut Session<'_>, mark: &Mark, now: Timestamp) -> Result<()> {
    let db = session.db;
    let is_used = db.first(statement!("is_used"), [], |row| row.get(0))?.unwrap_or(false);
    let held = |row: &Row<'_>| Ok((codec::id(row, 0)?, Timestamp::from_millis(row.get(1)?)));
    let mut evidence = Evidence { is_used, held: None };
    for (ns, ..) in db.all(statement!("namespaces"), [], queue_columns)? {
        if evidence.held.is_none() {
            evidence.held = db.first::<(JobId, _)>(statement!("held"), (ns, now.as_millis()), held)?;
        }
    }
    let before = session.openness()?;
    let after = before.after(mark, &evidence, db.place())?;
    if after != before {
        let text = serde_json::to_string(&after).map_err(|fault| db.unreadable("acta_ledger", fault))?;
        db.execute(statement!("save_openness"), [text])?;
    }
    session.memory.openness = Some(after);
    Ok(())
}

/// Takes in a part of a copy.
pub(super) fn import(session: &mut Session<'_>, parcel: &Parcel) -> Result<()> {
    session.openness()?.check_arriving(session.db.place())?;
    for name in parcel.common.names() {
        session.ensure_name(name)?;
    }
    for definition in parcel.common.definitions() {
        session.define(definition)?;
    }
    session.raise_last_number(parcel.common.last_number);
    let Some(contents) = &parcel.contents else { return Ok(()) };
    let namespace = &contents.queue.namespace;
    if session.namespace(namespace)?.is_some() {
        return Ok(());
    }
    session.configure(namespace, &contents.queue.settings)?;
    let Some((ns, queue)) = session.namespace(namespace)? else {
        return Err(Error::not_found("queue", &namespace.to_string()));
    };
    let mut rows = SqlRows::new(session, ns, queue);
    if contents.queue.paused {
        rows.set_queue_paused(true)?;
    }
    let mut lanes = BTreeMap::new();
    for lane in contents.lanes.values() {
        let made = rows.add_lane(&lane.name)?;
        lanes.insert(lane.number, made.number);
        rows.save_lane(&acta_core::rows::Lane { number: made.number, ..lane.clone() })?;
    }
    for job in contents.jobs.values() {
        import_job(&mut rows, job, &lanes)?;
    }
    for (key, record) in &contents.keys {
        rows.save_key(key, record)?;
    }
    for entry in &contents.history {
        rows.record(entry)?;
    }
    let none = VecDeque::new();
    for (row, kept) in contents.jobs.keys().map(|row| (*row, contents.signals.get(row).unwrap_or(&none))) {
        for (name, payload) in kept {
            rows.push_signal(row, name, payload)?;
        }
        for (name, value) in contents.steps.get(&row).into_iter().flatten() {
            rows.save_step(row, name, value)?;
        }
    }
    rows.flush()?;
    rows.wake();
    import_foreign(rows.session.db, ns, contents)
}

fn import_job(rows: &mut SqlRows<'_, '_>, job: &Job, lanes: &BTreeMap<LaneNumber, LaneNumber>) -> Result<()> {
    let mut job = job.clone();
    job.standing.lane = job.standing.lane.and_then(|number| lanes.get(&number).copied());
    if job.detail != Detail::default() {
        rows.save_detail(job.row, &job.detail)?;
    }
    rows.count(None, Some(job.standing.tally()));
    let name = match &job.identity.name {
        Some(name) => rows.session.ensure_name(name)?,
        None => 0,
    };
    insert_whole(rows.session.db, job, rows.ns, name)
}

fn import_foreign(db: &Db, ns: NamespaceNumber, contents: &Contents) -> Result<()> {
    let add = |row: Option<i64>, (name, value): &(String, Json)| {
        db.execute(statement!("add_foreign"), (ns, row, name, value.as_str())).map(|_| ())
    };
    contents.foreign.of_queue.iter().try_for_each(|member| add(None, member))?;
    for (row, members) in &contents.foreign.of_jobs {
        members.iter().try_for_each(|member| add(Some(row.cast_signed()), member))?;
    }
    Ok(())
}

/// Writes the ledger as it is now to another file.
pub(super) fn backup(from: &Path, to: &Path) -> Result<()> {
    filesystem::refuse_existing(to)?;
    filesystem::make_parents(to)?;
    let unavailable =
        |fault: std::io::Error| Error::Unavailable { place: to.display().to_string(), why: fault.to_string() };
    let beside = filesystem::beside(to);
    // A connection of its own: SQLite copies one snapshot, and others go on writing.
    let db = Db::open(from, Synchronous::Full, true)?;
    db.execute(statement!("vacuum_into"), [beside.display().to_string()])?;
    File::open(&beside).and_then(|file| file.sync_all()).map_err(unavailable)?;
    filesystem::rename_new(&beside, to)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(unavailable)
}

/// What is wrong with the file.
pub(super) fn examine(session: &mut Session<'_>, path: &Path) -> Result<Vec<Finding>> {
    let place = path.display().to_string();
    let mut findings = Vec::new();
    let said = session.db.all(statement!("integrity_check"), [], |row| row.get::<_, String>(0))?;
    for what in said.into_iter().filter(|what| what != "ok") {
        let fix = "stop all that uses the file, keep a copy of it, and restore a backup";
        findings.push(Finding::new(&place, format!("SQLite finds it damaged: {what}"), fix));
    }
    let mode = session.db.all(statement!("journal_mode"), [], |row| row.get::<_, String>(0))?;
    if mode != ["wal"] {
        let fix = "`PRAGMA journal_mode = wal` with nobody else at the file sets it again";
        findings.push(Finding::new(&place, format!("its journal mode is {}, not wal", mode.join(" ")), fix));
    }
    findings.extend(filesystem::unwritable(path));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    findings.extend(filesystem::unwritable(folder));
    Ok(findings)
}
