//! Whole ledgers: copies, and what is wrong with the database.

use std::collections::BTreeMap;

use acta_core::book::{Common, Contents};
use acta_core::rows::Rows;
use acta_core::store::{Evidence, Finding, Mark, Openness, Parcel};
use acta_core::{Clock, Detail, Error, Job, JobId, Json, Label, Name, Namespace, Result, Timestamp};

use super::act::now;
use super::codec::{self, get};
use super::rows::PgRows;
use super::session::{NamespaceNumber, Session, params, statement};

/// What the ledger keeps of a namespace, or only what all have in common.
pub(super) fn export(session: &Session, namespace: Option<&Namespace>) -> Result<Parcel> {
    let common = common(session)?;
    let Some(namespace) = namespace else { return Ok(Parcel { common, contents: None }) };
    let Some((ns, queue)) = session.namespace(namespace)? else {
        return Err(Error::not_found("queue", &namespace.to_string()));
    };
    let of_ns = params![ns => INT4];
    let mut contents = Contents::new(queue);
    for row in session.all(statement!("export_jobs"), of_ns)? {
        let job = codec::job(&row, 0)?;
        contents.jobs.insert(job.row, job);
    }
    for row in session.all(statement!("export_lanes"), of_ns)? {
        let lane = codec::lane(&row)?;
        contents.lanes.insert(lane.number, lane);
    }
    for row in session.all(statement!("export_keys"), of_ns)? {
        contents.keys.insert(Label::trusted(get::<&str>(&row, 4)?), codec::key_record(&row, 0)?);
    }
    let history = session.all(statement!("export_events"), of_ns)?;
    contents.history = history.iter().map(codec::entry).collect::<Result<_>>()?;
    for row in session.all(statement!("export_signals"), of_ns)? {
        let signal = (Name::trusted(get::<&str>(&row, 1)?), codec::json(&row, 2)?);
        contents.signals.entry(codec::number(&row, 0)?).or_default().push_back(signal);
    }
    for row in session.all(statement!("export_steps"), of_ns)? {
        let step = (get(&row, 1)?, codec::json(&row, 2)?);
        contents.steps.entry(codec::number(&row, 0)?).or_default().push(step);
    }
    for row in session.all(statement!("export_foreign"), of_ns)? {
        let members = match get::<Option<i64>>(&row, 0)? {
            None => &mut contents.foreign.of_queue,
            Some(row) => contents.foreign.of_jobs.entry(row.cast_unsigned()).or_default(),
        };
        members.push((get(&row, 1)?, codec::json(&row, 2)?));
    }
    Ok(Parcel { common, contents: Some(contents) })
}

fn common(session: &Session) -> Result<Common> {
    let mut common = Common::default();
    common.openness = session.openness()?;
    common.last_number = codec::number(&session.one(statement!("last_number"), &[])?, 0)?;
    for (name, definition) in session.names()? {
        if let Some(definition) = definition {
            common.define(definition)?;
        }
        common.add_name(&name);
    }
    Ok(common)
}

/// Takes a step of a copy. Nobody else writes meanwhile.
pub(super) fn mark(session: &Session, mark: &Mark, clock: Option<&dyn Clock>) -> Result<()> {
    session.command("SET LOCAL lock_timeout = '10s'")?;
    session.all(statement!("close"), &[])?;
    let now = now(session, clock)?;
    let mut evidence = Evidence { is_used: get(&session.one(statement!("is_used"), &[])?, 0)?, held: None };
    for (ns, _) in session.namespaces()? {
        if evidence.held.is_none() {
            let found = session.first(statement!("held"), params![ns => INT4, now.as_millis() => INT8])?;
            let held =
                |row| Ok::<_, Error>((JobId::trusted(get::<&str>(row, 0)?), Timestamp::from_millis(get(row, 1)?)));
            evidence.held = found.as_ref().map(held).transpose()?;
        }
    }
    let before = session.openness()?;
    let after = before.after(mark, &evidence, session.place())?;
    if after != before {
        if matches!(mark, Mark::Leaving { .. }) {
            admit_all(session, now)?;
        }
        let text = serde_json::to_string(&after).map_err(|fault| session.unreadable("its openness", fault))?;
        let is_open = matches!(after, Openness::Open | Openness::Arrived { .. });
        session.execute(statement!("save_openness"), params![text => TEXT, is_open => BOOL])?;
    }
    Ok(())
}

/// Lets all that has arrived join its lanes: a copy knows of none that is on its way.
fn admit_all(session: &Session, now: Timestamp) -> Result<()> {
    for (ns, _) in session.namespaces()? {
        while get(&session.one(statement!("has_arrivals"), params![ns => INT4])?, 0)? {
            session.execute(statement!("admit"), params![ns => INT4, now.as_millis() => INT8])?;
        }
    }
    Ok(())
}

/// Takes in a part of a copy.
pub(super) fn import(session: &Session, parcel: &Parcel) -> Result<()> {
    session.openness()?.check_arriving(session.place())?;
    for name in parcel.common.names() {
        session.ensure_name(name)?;
    }
    for definition in parcel.common.definitions() {
        session.define(definition)?;
    }
    let last = parcel.common.last_number.cast_signed();
    session.all(statement!("raise_last_number"), params![last => INT8])?;
    let Some(contents) = &parcel.contents else { return Ok(()) };
    let namespace = &contents.queue.namespace;
    if session.namespace(namespace)?.is_some() {
        return Ok(());
    }
    let (ns, queue) = session.configure(namespace, &contents.queue.settings)?;
    // Counted at no instant: what comes with a copy has not happened here.
    let mut rows = PgRows::new(session, ns, queue, Timestamp::MIN);
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
        let mut job: Job = job.clone();
        job.standing.lane = job.standing.lane.and_then(|number| lanes.get(&number).copied());
        if job.detail != Detail::default() {
            rows.save_detail(job.row, &job.detail)?;
        }
        rows.count(None, Some(job.standing.tally()));
        rows.insert(job)?;
    }
    for (key, record) in &contents.keys {
        rows.save_key(key, record)?;
    }
    for entry in &contents.history {
        rows.record(entry)?;
    }
    for row in contents.jobs.keys() {
        for (name, payload) in contents.signals.get(row).into_iter().flatten() {
            rows.push_signal(*row, name, payload)?;
        }
        for (name, value) in contents.steps.get(row).into_iter().flatten() {
            rows.save_step(*row, name, value)?;
        }
    }
    rows.finish()?;
    import_foreign(session, ns, contents)
}

fn import_foreign(session: &Session, ns: NamespaceNumber, contents: &Contents) -> Result<()> {
    let add = |row: Option<i64>, (name, value): &(String, Json)| {
        let params = params![ns => INT4, row => INT8, name => TEXT, value.as_str() => TEXT];
        session.execute(statement!("add_foreign"), params).map(|_| ())
    };
    contents.foreign.of_queue.iter().try_for_each(|member| add(None, member))?;
    for (row, members) in &contents.foreign.of_jobs {
        members.iter().try_for_each(|member| add(Some(row.cast_signed()), member))?;
    }
    Ok(())
}

/// What is wrong with the database, as far as it concerns the ledger.
pub(super) fn examine(session: &Session) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let place = session.place();
    let row = session.one(statement!("examine"), &[])?;
    let (version, durable, fsync, oldest): (i32, &str, &str, i64) =
        (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?, get(&row, 3)?);
    if version < 140_000 {
        let what = format!("the server is version {}; 14 is the oldest that is supported", version / 10_000);
        findings.push(Finding::new(place, what, "use a newer server"));
    }
    if durable == "off" {
        let fix = "set it to on, at least for the role that the ledger is used by";
        findings.push(Finding::new(place, "synchronous_commit is off: a crash loses what was acknowledged", fix));
    }
    if fsync == "off" {
        let fix = "set fsync to on: without it a crash may destroy the whole database";
        findings.push(Finding::new(place, "the server does not write durably", fix));
    }
    if oldest > 600 {
        let what =
            format!("a transaction has been open for {oldest} s: what is deleted can't be cleared away behind it");
        let fix = "find it in pg_stat_activity by its xact_start, and end it";
        findings.push(Finding::new(place, what, fix));
    }
    let drifted: i64 = get(&session.one(statement!("drifted"), &[])?, 0)?;
    if drifted > 0 {
        let what = format!("{drifted} jobs stand under another instant than that at which they are due");
        findings.push(Finding::new(
            place,
            what,
            "report it: the ledger has written them so; acting on a job repairs it",
        ));
    }
    Ok(findings)
}
