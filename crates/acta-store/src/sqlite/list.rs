//! Listing jobs, a page at a time.

use acta_core::store::{Found, JobFilter, Page};
use acta_core::{Detail, Identity, Job, Namespace, Result, Standing, State};
use rusqlite::types::Value;

use super::codec;
use super::rows::SqlRows;
use super::session::Session;
use acta_core::rows::Rows;

/// The columns of a listed job, and the conditions that may be put on them. No text of a caller ever gets in here:
/// each condition is one of these constants, its value a parameter.
const SELECT: &str = include_str!("sql/list.sql");
const IN_NAMESPACE: &str = " AND s.ns = ?";
const IN_LANE: &str = " AND j.lane = ?";
const WITH_KEY: &str = " AND j.key = ?";
const SINCE: &str = " AND j.created_at >= ?";
const BEFORE: &str = " AND s.job < ?";
const ORDER: &str = " ORDER BY s.job DESC LIMIT ?";

/// How many rows are looked at in one go.
const CHUNK: usize = 500;

/// One page of the jobs that the filter takes, newest first.
pub(super) fn page(session: &mut Session<'_>, filter: &JobFilter) -> Result<Page> {
    filter.check()?;
    let limit = filter.limit.clamp(1, 1_000);
    let ns = match &filter.namespace {
        None => None,
        Some(namespace) => match session.namespace(namespace)? {
            Some((ns, _)) => Some(ns),
            None => return Err(acta_core::Error::not_found("queue", &namespace.to_string())),
        },
    };
    let mut page = Page { jobs: Vec::new(), next: None, unreadable: Vec::new() };
    let mut before = filter.after_row;
    loop {
        let chunk = rows_before(session, filter, ns, before)?;
        let is_last = chunk.len() < CHUNK;
        for (row, standing, identity, of) in chunk {
            before = Some(row);
            let namespace = session.namespace_numbered(of)?.namespace;
            if !filter.takes_status(&namespace, standing.state, standing.business) {
                continue;
            }
            page.jobs.push(whole(session, namespace, row, standing, identity, of)?);
            if page.jobs.len() == limit {
                page.next = before;
                return Ok(page);
            }
        }
        if is_last {
            return Ok(page);
        }
    }
}

/// The job in `row` with everything it has.
pub(super) fn whole(
    session: &mut Session<'_>,
    namespace: Namespace,
    row: u64,
    standing: Standing,
    identity: Identity,
    ns: i64,
) -> Result<Found> {
    let detail = if standing.has_detail {
        let queue = session.namespace_numbered(ns)?;
        SqlRows::new(session, ns, queue).detail(row)?
    } else {
        Detail::default()
    };
    Ok(Found { namespace, job: Job { row, identity, standing, detail } })
}

type Listed = (u64, Standing, Identity, i64);

fn rows_before(
    session: &mut Session<'_>,
    filter: &JobFilter,
    ns: Option<i64>,
    before: Option<u64>,
) -> Result<Vec<Listed>> {
    let mut sql = String::from(SELECT.trim_end());
    let mut values: Vec<Value> = Vec::new();
    let mut add = |condition: &'static str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push(value);
        }
    };
    add(IN_NAMESPACE, ns.map(Value::Integer));
    add(IN_LANE, filter.lane.as_ref().map(|lane| Value::Text(lane.to_string())));
    add(WITH_KEY, filter.key.as_ref().map(|key| Value::Text(key.to_string())));
    add(SINCE, filter.since.map(|since| Value::Integer(since.as_millis())));
    add(BEFORE, before.map(|row| Value::Integer(row.cast_signed())));
    if let Some(word) = &filter.status {
        sql.push_str(states_of(word));
    }
    sql.push_str(ORDER);
    values.push(Value::Integer(i64::try_from(CHUNK).unwrap_or(i64::MAX)));

    let db = session.db;
    let run = || -> rusqlite::Result<Vec<_>> {
        let mut statement = db.raw.prepare_cached(&sql)?;
        let rows = statement.query_map(codec::bind(values), |row| {
            let (job, standing, identity) = codec::candidate(row)?;
            let ns: i64 = row.get(1 + codec::STANDING_WIDTH + codec::IDENTITY_WIDTH)?;
            Ok((job, standing, identity, ns))
        })?;
        rows.collect()
    };
    run().map_err(|fault| db.fault(&fault))
}

/// A condition that lets the index of failures serve where only they are asked for. Which of them are meant is
/// decided by the filter.
fn states_of(word: &str) -> &'static str {
    match JobFilter::states_of(word)[..] {
        [State::Failed] => " AND s.unsuccessful = 7",
        [State::Cancelled] => " AND s.unsuccessful = 8",
        [State::Failed, State::Cancelled] => " AND s.unsuccessful IS NOT NULL",
        [State::Claimed | State::Running, ..] => " AND s.lease_expires_at IS NOT NULL",
        _ => "",
    }
}
