//! An item of a file: from the members that everybody sees to the job, and what has to stand aside.

use acta_core::job::{Exception, FailureKind, KeyHold, Settled};
use acta_core::policy::{DEFAULT_PRIORITY, MOST_PRIORITY};
use acta_core::rows::Queue;
use acta_core::{Detail, Family, Identity, Job, JobId, Json, Name, Span, Standing, State, Timestamp};
use serde::Deserialize;

use super::aside::Aside;
use super::text::{self, Fields, Flaw};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wait {
    signal: Name,
    until: Option<Timestamp>,
}

/// The states, in the order in which a family's word means them where nothing else is said.
const MEANT: [State; 9] = [
    State::Ready,
    State::Claimed,
    State::Running,
    State::Succeeded,
    State::Failed,
    State::Cancelled,
    State::Scheduled,
    State::Waiting,
    State::Blocked,
];

/// Reads an item. It has no row, no place and no lane number yet: these depend on the others.
pub(super) fn read(
    queue: &Queue,
    text: &str,
    id: &JobId,
    fields: &mut Fields<'_>,
    aside: &Aside,
    now: Timestamp,
    mended: &mut Vec<String>,
) -> Result<Job, Flaw> {
    let family = queue.namespace.family();
    // Where it is says whose it is.
    let _: Option<Json> = fields.read(text, "queue")?;
    let _: Option<Json> = fields.read(text, "namespace")?;
    let identity = Identity {
        id: id.clone(),
        payload: match fields.take(text, "payload")? {
            None => return Err(fields.flaw(text, format!("the item {id} has no \"payload\""))),
            Some(part) => Json::new(part).map_err(|fault| Flaw::at(text, part, fault))?,
        },
        created_at: fields.read(text, "createdAt")?.unwrap_or_else(|| {
            mended.push(format!("{id}: it had no createdAt"));
            now
        }),
        name: fields.read(text, "name")?,
        lane: fields.read(text, "lane")?,
        key: fields.read(text, "key")?,
        dedup_key: fields.read(text, "dedupKey")?,
        lease: lease(text, fields)?,
        traceparent: fields.read(text, "traceparent")?,
        backoff: aside.backoff,
    };
    let (state, is_business) = state(family, text, fields)?;
    let wait: Option<Wait> = fields.read(text, "wait")?;
    let (signal, wait_until) = wait.map_or((aside.wait.clone(), None), |wait| (Some(wait.signal), wait.until));
    let detail = Detail {
        wait: signal,
        progress: fields.read(text, "progress")?,
        started_at: fields.read(text, "startedAt")?,
        output: fields.take(text, "output")?.map(|part| checked(text, part)).transpose()?,
        exception: fields.read::<Exception>(text, "exception")?,
    };
    let failed_for_business =
        detail.exception.as_ref().is_some_and(|exception| exception.kind == FailureKind::Business);
    let attempts = fields.read(text, "attempts")?.unwrap_or_default();
    let standing = Standing {
        state,
        place: 0,
        priority: priority(family, text, fields)?,
        lane: None,
        lane_paused: false,
        paused: fields.read(text, "paused")?.unwrap_or_default(),
        cancel_requested: fields.read(text, "cancelRequested")?.unwrap_or_default(),
        attempts,
        max_attempts: max_attempts(family, text, fields)?,
        retryable: fields.read(text, "retryable")?.unwrap_or(true),
        fence: number(text, fields, "fence")?,
        lost_leases: fields.read(text, "lostLeases")?.unwrap_or_default(),
        run_at: fields.read(text, "runAt")?,
        expires_at: fields.read(text, "expiresAt")?,
        wait_until,
        lease_expires_at: fields.read(text, "leaseExpiresAt")?,
        claimed_by: fields.read(text, "claimedBy")?,
        claimed_at: fields.read(text, "claimedAt")?,
        finished_at: fields.read(text, "finishedAt")?,
        retention: aside.retention,
        prune_at: aside.prune_at,
        business: state == State::Failed && (is_business || failed_for_business),
        settled: aside.settled.map(Into::into).or_else(|| settled(state)),
        key_hold: KeyHold::None,
        has_detail: detail != Detail::default(),
    };
    let mut job = Job { row: 0, identity, standing, detail };
    job.standing.key_hold = aside.key_hold.map_or_else(|| key_hold(&job.identity), Into::into);
    let mut before = job.standing.clone();
    agree(queue, &mut job, now);
    // When a finished job may go is mostly not written, since it can be told.
    before.prune_at = job.standing.prune_at;
    if job.standing != before {
        mended.push(format!("{id}: what belongs to its status was completed"));
    }
    Ok(job)
}

fn lease(text: &str, fields: &mut Fields<'_>) -> Result<Option<Span>, Flaw> {
    let Some(part) = fields.take(text, "lease")? else { return Ok(None) };
    let lease: Option<Span> = text::read(text, part)?;
    match lease {
        Some(lease) if lease.as_millis() == 0 => Err(Flaw::at(text, part, "a lease of 0 is no time at all")),
        lease => Ok(lease),
    }
}

fn max_attempts(family: Family, text: &str, fields: &mut Fields<'_>) -> Result<u32, Flaw> {
    let Some(part) = fields.take(text, "maxAttempts")? else { return Ok(family.max_attempts()) };
    match text::read(text, part)? {
        0 => Err(Flaw::at(text, part, "maxAttempts 0 leaves no attempt at all")),
        most => Ok(most),
    }
}

/// A number that the ledger counts on from.
fn number(text: &str, fields: &mut Fields<'_>, name: &str) -> Result<u64, Flaw> {
    let Some(part) = fields.take(text, name)? else { return Ok(0) };
    let number = text::read(text, part)?;
    if number > super::aside::MOST_NUMBER {
        return Err(Flaw::at(text, part, format!("{name} {number} is more than {}", super::aside::MOST_NUMBER)));
    }
    Ok(number)
}

fn checked(text: &str, part: &str) -> Result<Json, Flaw> {
    Json::new(part).map_err(|fault| Flaw::at(text, part, fault))
}

/// The state that the words say, and whether they say that it is a business failure.
///
/// `status` is what people change; `state` says more only as long as it agrees with it.
fn state(family: Family, text: &str, fields: &mut Fields<'_>) -> Result<(State, bool), Flaw> {
    let told: Option<State> = fields.read(text, "state")?;
    let Some(part) = fields.take(text, "status")? else { return Ok((told.unwrap_or(State::Ready), false)) };
    let word: String = text::read(text, part)?;
    let means = |state: State| family.word(state, false) == word || family.word(state, true) == word;
    let state = told.filter(|&state| means(state)).or_else(|| MEANT.into_iter().find(|&state| means(state)));
    let Some(state) = state else {
        let mut words: Vec<&str> =
            MEANT.iter().flat_map(|&state| [false, true].map(|is| family.word(state, is))).collect();
        words.sort_unstable();
        words.dedup();
        return Err(Flaw::at(text, part, format!("status {word:?} is none of {}", words.join(", "))));
    };
    Ok((state, family.word(state, false) != word))
}

fn priority(family: Family, text: &str, fields: &mut Fields<'_>) -> Result<u8, Flaw> {
    let Some(part) = fields.take(text, "priority")? else { return Ok(DEFAULT_PRIORITY) };
    let priority: u8 = text::read(text, part)?;
    if priority > MOST_PRIORITY {
        return Err(Flaw::at(text, part, format!("priority {priority} is more than {MOST_PRIORITY}")));
    }
    if !family.has_priority() && priority != DEFAULT_PRIORITY {
        return Err(Flaw::at(text, part, "an item of this queue has no priority: first in, first out"));
    }
    Ok(priority)
}

/// Lets what belongs to the state agree with it, as after a change by hand.
fn agree(queue: &Queue, job: &mut Job, now: Timestamp) {
    let Job { identity, standing, detail, .. } = job;
    // Each attempt was a claim, and so was whatever left these.
    let was_claimed = standing.claimed_by.is_some()
        || standing.claimed_at.is_some()
        || standing.lost_leases > 0
        || standing.state.is_held()
        || standing.state == State::Waiting
        || detail.wait.is_some()
        || standing.settled.is_some();
    standing.fence = standing.fence.max(u64::from(standing.attempts)).max(u64::from(was_claimed));
    if standing.state.is_held() {
        let lease = identity.lease.or(queue.settings.lease);
        let lease = lease.unwrap_or_else(|| Span::from_millis(queue.namespace.family().lease_ms()));
        let since = standing.claimed_at.unwrap_or(identity.created_at);
        standing.claimed_at = Some(since);
        standing.lease_expires_at = standing.lease_expires_at.or(Some(since.plus_ms(lease.as_millis())));
    } else {
        standing.lease_expires_at = None;
        standing.cancel_requested = false;
    }
    if standing.state != State::Waiting {
        standing.wait_until = None;
    }
    match standing.state {
        State::Scheduled if standing.run_at.is_none() => standing.state = State::Ready,
        State::Ready if standing.run_at.is_some_and(|at| at > now) => standing.state = State::Scheduled,
        _ => {}
    }
    if standing.state.is_final() {
        standing.finished_at = standing.finished_at.or(Some(now));
        standing.prune_at = standing.prune_at.or_else(|| prune_at(queue, standing));
        standing.paused = false;
    } else {
        standing.finished_at = None;
        standing.prune_at = None;
    }
}

/// When a finished job may go, if nothing else was said at its end.
fn prune_at(queue: &Queue, standing: &Standing) -> Option<Timestamp> {
    standing.finished_at.map(|at| standing.pruned_from(&queue.settings, at))
}

/// How its last claim was settled, if nothing else is said: a success without a result.
fn settled(state: State) -> Option<Settled> {
    (state == State::Succeeded).then_some(Settled { mark: 0, state, run_at: None })
}

/// How a job holds its key, if nothing else is said.
fn key_hold(identity: &Identity) -> KeyHold {
    if identity.dedup_key.is_some() { KeyHold::Kept } else { KeyHold::None }
}

/// What of a job has to stand aside.
pub(super) fn aside(queue: &Queue, job: &Job) -> Aside {
    let Job { row, identity, standing, detail } = job;
    Aside {
        row: Some(*row).filter(|_| super::mend::row_of(&queue.namespace, &identity.id) != Some(*row)),
        place: Some(standing.place).filter(|place| place != row),
        backoff: identity.backoff,
        retention: standing.retention,
        prune_at: standing.prune_at.filter(|_| standing.prune_at != prune_at(queue, standing)),
        key_hold: Some(standing.key_hold).filter(|&hold| hold != key_hold(identity)).map(Into::into),
        settled: standing.settled.filter(|_| standing.settled != settled(standing.state)).map(Into::into),
        wait: detail.wait.clone().filter(|_| standing.state != State::Waiting),
        ..Aside::default()
    }
}
