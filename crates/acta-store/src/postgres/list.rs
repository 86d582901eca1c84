//! Listing jobs, a page at a time.

use std::collections::BTreeMap;

use acta_core::store::{Found, JobFilter, Page};
use acta_core::{Error, Result, State};
use tokio_postgres::Row;

use super::codec::{self, NAMESPACE, get};
use super::connection::Param;
use super::session::{NamespaceNumber, Session, params, statement};

/// The columns of a listed job, and the conditions that may be put on them. No text of a caller ever gets in here: each condition
/// is one of these constants, its value a parameter.
const CONDITIONS: [&str; 5] = ["s.ns =", "j.lane =", "j.key =", "j.created_at >=", "s.job <"];

/// How many rows are looked at in one go.
const CHUNK: usize = 500;

/// One page of the jobs that the filter takes, newest first.
pub(super) fn page(session: &Session, filter: &JobFilter) -> Result<Page> {
    filter.check()?;
    let limit = filter.limit.clamp(1, 1_000);
    let ns = match &filter.namespace {
        None => None,
        Some(namespace) => match session.namespace(namespace)? {
            Some((ns, _)) => Some(ns),
            None => return Err(Error::not_found("queue", &namespace.to_string())),
        },
    };
    let namespaces: BTreeMap<NamespaceNumber, _> =
        session.namespaces()?.into_iter().map(|(number, queue)| (number, queue.namespace)).collect();
    let mut page = Page { jobs: Vec::new(), next: None, unreadable: Vec::new() };
    let mut before = filter.after_row;
    loop {
        let chunk = rows_before(session, filter, ns, before)?;
        for row in &chunk {
            let job = codec::job(row, 0)?;
            before = Some(job.row);
            let number: NamespaceNumber = get(row, NAMESPACE)?;
            let namespace = namespaces.get(&number);
            let namespace = namespace.ok_or_else(|| session.unreadable("namespaces", format!("no number {number}")))?;
            if !filter.takes_status(namespace, job.standing.state, job.standing.business) {
                continue;
            }
            page.jobs.push(Found { namespace: namespace.clone(), job });
            if page.jobs.len() == limit {
                page.next = before;
                return Ok(page);
            }
        }
        if chunk.len() < CHUNK {
            return Ok(page);
        }
    }
}

fn rows_before(
    session: &Session,
    filter: &JobFilter,
    ns: Option<NamespaceNumber>,
    before: Option<u64>,
) -> Result<Vec<Row>> {
    let lane = filter.lane.as_ref().map(ToString::to_string);
    let key = filter.key.as_ref().map(ToString::to_string);
    let since = filter.since.map(acta_core::Timestamp::as_millis);
    let before = before.map(u64::cast_signed);
    let chunk = i64::try_from(CHUNK).unwrap_or(i64::MAX);
    let values: &[Param<'_>] = params![ns => INT4, lane => TEXT, key => TEXT, since => INT8, before => INT8];
    let is_given = [ns.is_some(), lane.is_some(), key.is_some(), since.is_some(), before.is_some()];
    let mut sql = String::from(statement!("list").trim_end());
    let mut given: Vec<Param<'_>> = Vec::new();
    for (index, condition) in CONDITIONS.into_iter().enumerate().filter(|(index, _)| is_given[*index]) {
        given.push(values[index].clone());
        sql.extend([" AND ", condition, " $", &given.len().to_string()]);
    }
    if let Some(word) = &filter.status {
        sql.push_str(states_of(word));
    }
    given.push((&chunk, tokio_postgres::types::Type::INT8));
    sql.extend([" ORDER BY s.job DESC LIMIT $", &given.len().to_string()]);
    session.all(&sql, &given)
}

/// A condition that lets the index of failures, or of leases, serve where only they are asked for. Which of them are meant is
/// decided by the filter.
fn states_of(word: &str) -> &'static str {
    match JobFilter::states_of(word)[..] {
        [State::Failed] => " AND s.state = 7",
        [State::Cancelled] => " AND s.state = 8",
        [State::Failed, State::Cancelled] => " AND s.state IN (7, 8)",
        [State::Claimed | State::Running, ..] => " AND s.lease_expires_at IS NOT NULL AND s.due_at IS NOT NULL",
        _ => "",
    }
}
