//! Rows of the database to values of the rules, and back.

use std::cmp::Reverse;

use acta_core::history::Entry;
use acta_core::job::{KeyHold, LaneNumber, Settled, Tally};
use acta_core::rows::{KeyRecord, Lane};
use acta_core::{
    Detail, Error, Identity, Job, JobId, Json, Label, Name, Result, Span, Standing, State, Timestamp, Traceparent,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::places::Tid;

/// How many columns of `acta.whole` are the standing, its row number before it included.
const STANDING_WIDTH: usize = 21;
/// How many more are the identity.
const IDENTITY_WIDTH: usize = 10;
/// Where the namespace's number stands in `acta.whole`.
pub(super) const NAMESPACE: usize = STANDING_WIDTH + IDENTITY_WIDTH + 5;

fn unfit(column: usize, why: impl std::fmt::Display) -> Error {
    Error::Unreadable { place: format!("column {column} of an answer of PostgreSQL"), why: why.to_string() }
}

/// A value of a row.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|fault| unfit(column, fault))
}

pub(super) fn number(row: &Row, column: usize) -> Result<u64> {
    Ok(get::<i64>(row, column)?.cast_unsigned())
}

pub(super) fn instant(row: &Row, column: usize) -> Result<Option<Timestamp>> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

fn small(row: &Row, column: usize) -> Result<u32> {
    Ok(get::<i32>(row, column)?.unsigned_abs())
}

fn span(row: &Row, column: usize) -> Result<Option<Span>> {
    Ok(get::<Option<i64>>(row, column)?.map(Span::from_millis))
}

pub(super) fn label(row: &Row, column: usize) -> Result<Option<Label>> {
    Ok(get::<Option<&str>>(row, column)?.map(Label::trusted))
}

pub(super) fn json(row: &Row, column: usize) -> Result<Json> {
    Ok(Json::trusted(get::<&str>(row, column)?))
}

pub(super) fn state_of(code: i16) -> Result<State> {
    State::from_code(i64::from(code)).ok_or_else(|| unfit(0, format!("{code} is not the code of a state")))
}

/// The bits of the column `flags`. The bit 256, of jobs that are ready since their enqueue, is the functions' own.
mod flag {
    pub(super) const PAUSED: i16 = 1;
    pub(super) const LANE_PAUSED: i16 = 2;
    pub(super) const CANCEL_REQUESTED: i16 = 4;
    pub(super) const NOT_RETRYABLE: i16 = 8;
    pub(super) const BUSINESS: i16 = 16;
    pub(super) const HAS_DETAIL: i16 = 32;
    pub(super) const KEY_KEPT: i16 = 64;
    pub(super) const KEY_WHILE_LIVE: i16 = 128;
}

/// The flags of a standing.
pub(super) fn flags_of(standing: &Standing) -> i16 {
    let bit = |is: bool, bit: i16| if is { bit } else { 0 };
    bit(standing.paused, flag::PAUSED)
        | bit(standing.lane_paused, flag::LANE_PAUSED)
        | bit(standing.cancel_requested, flag::CANCEL_REQUESTED)
        | bit(!standing.retryable, flag::NOT_RETRYABLE)
        | bit(standing.business, flag::BUSINESS)
        | bit(standing.has_detail, flag::HAS_DETAIL)
        | bit(standing.key_hold == KeyHold::Kept, flag::KEY_KEPT)
        | bit(standing.key_hold == KeyHold::WhileLive, flag::KEY_WHILE_LIVE)
}

/// The last outcome as one number.
pub(super) fn packed(settled: Settled) -> i64 {
    settled.mark << 4 | i64::from(settled.state.code())
}

/// Row number and standing, from the first columns of `acta.whole` on.
pub(super) fn row_and_standing(row: &Row, from: usize) -> Result<(u64, Standing)> {
    let at = |offset: usize| from + offset;
    let settled = match get::<Option<i64>>(row, at(19))? {
        Some(packed) => Some(Settled {
            mark: packed >> 4,
            state: State::from_code(packed & 15).ok_or_else(|| unfit(at(19), "holds no state"))?,
            run_at: instant(row, at(20))?,
        }),
        None => None,
    };
    let standing = Standing {
        place: number(row, at(2))?,
        priority: priority(row, at(3))?,
        lane: lane_number(row, at(4))?,
        attempts: small(row, at(6))?,
        max_attempts: small(row, at(7))?,
        fence: number(row, at(8))?,
        lost_leases: small(row, at(9))?,
        run_at: instant(row, at(10))?,
        expires_at: instant(row, at(11))?,
        wait_until: instant(row, at(12))?,
        lease_expires_at: instant(row, at(13))?,
        claimed_by: label(row, at(14))?,
        claimed_at: instant(row, at(15))?,
        finished_at: instant(row, at(16))?,
        retention: span(row, at(17))?,
        prune_at: instant(row, at(18))?,
        settled,
        ..flagged(state_of(get(row, at(1))?)?, get(row, at(5))?)
    };
    Ok((number(row, at(0))?, standing))
}

/// A standing of which nothing is known but its state and flags.
fn flagged(state: State, flags: i16) -> Standing {
    let is = |bit: i16| flags & bit != 0;
    Standing {
        state,
        place: 0,
        priority: 0,
        lane: None,
        lane_paused: is(flag::LANE_PAUSED),
        paused: is(flag::PAUSED),
        cancel_requested: is(flag::CANCEL_REQUESTED),
        attempts: 0,
        max_attempts: 0,
        retryable: !is(flag::NOT_RETRYABLE),
        fence: 0,
        lost_leases: 0,
        run_at: None,
        expires_at: None,
        wait_until: None,
        lease_expires_at: None,
        claimed_by: None,
        claimed_at: None,
        finished_at: None,
        retention: None,
        prune_at: None,
        business: is(flag::BUSINESS),
        key_hold: match (is(flag::KEY_KEPT), is(flag::KEY_WHILE_LIVE)) {
            (true, _) => KeyHold::Kept,
            (false, true) => KeyHold::WhileLive,
            (false, false) => KeyHold::None,
        },
        settled: None,
        has_detail: is(flag::HAS_DETAIL),
    }
}

fn priority(row: &Row, column: usize) -> Result<u8> {
    u8::try_from(get::<i16>(row, column)?).map_err(|fault| unfit(column, fault))
}

fn lane_number(row: &Row, column: usize) -> Result<Option<LaneNumber>> {
    Ok(get::<Option<i64>>(row, column)?.map(|number| LaneNumber(number.cast_unsigned())))
}

/// The identity, in the columns of `acta.whole` that begin at `from`.
pub(super) fn identity(row: &Row, from: usize) -> Result<Identity> {
    let at = |offset: usize| from + offset;
    let backoff: Option<&str> = get(row, at(7))?;
    Ok(Identity {
        id: JobId::trusted(get::<&str>(row, at(0))?),
        name: get::<Option<&str>>(row, at(1))?.map(Name::trusted),
        lane: label(row, at(2))?,
        key: label(row, at(3))?,
        dedup_key: label(row, at(4))?,
        payload: json(row, at(5))?,
        created_at: Timestamp::from_millis(get(row, at(6))?),
        // One that can't be read is as good as none: it stops no claim.
        backoff: backoff.and_then(|text| serde_json::from_str(text).ok()),
        lease: span(row, at(8))?,
        traceparent: get::<Option<&str>>(row, at(9))?.map(Traceparent::trusted),
    })
}

/// The detail, likewise.
pub(super) fn detail(row: &Row, from: usize) -> Result<Detail> {
    let at = |offset: usize| from + offset;
    let exception: Option<&str> = get(row, at(4))?;
    Ok(Detail {
        wait: get::<Option<&str>>(row, at(0))?.map(Name::trusted),
        progress: get(row, at(1))?,
        started_at: instant(row, at(2))?,
        output: get::<Option<&str>>(row, at(3))?.map(Json::trusted),
        exception: exception.map(serde_json::from_str).transpose().map_err(|fault| unfit(at(4), fault))?,
    })
}

/// A whole job, in the columns of `acta.whole` that begin at `from`.
pub(super) fn job(row: &Row, from: usize) -> Result<Job> {
    let (number, standing) = row_and_standing(row, from)?;
    let identity = identity(row, from + STANDING_WIDTH)?;
    let detail =
        if standing.has_detail { detail(row, from + STANDING_WIDTH + IDENTITY_WIDTH)? } else { Detail::default() };
    Ok(Job { row: number, identity, standing, detail })
}

/// How many columns of an exchange's answer are those of its wave.
pub(super) const EXCHANGED: usize = 6;

/// What a row of an exchange's answer is of: a claimed job, or the wave.
pub(super) fn is_claimed(row: &Row) -> Result<bool> {
    Ok(get::<Option<i64>>(row, EXCHANGED)?.is_some())
}

/// The jobs that an exchange has just claimed, in claim order. What every claim sets is not told again.
pub(super) fn claimed(rows: &[Row], robot: &Label) -> Result<Vec<Job>> {
    let mut jobs = rows.iter().map(|row| claimed_one(row, robot)).collect::<Result<Vec<Job>>>()?;
    jobs.sort_unstable_by_key(|job| (Reverse(job.standing.priority), job.standing.place));
    Ok(jobs)
}

fn claimed_one(row: &Row, robot: &Label) -> Result<Job> {
    let at = |offset: usize| EXCHANGED + offset;
    let standing = Standing {
        place: number(row, at(1))?,
        priority: priority(row, at(2))?,
        lane: lane_number(row, at(3))?,
        attempts: small(row, at(5))?,
        max_attempts: small(row, at(6))?,
        fence: number(row, at(7))?,
        lost_leases: small(row, at(8))?,
        run_at: instant(row, at(9))?,
        expires_at: instant(row, at(10))?,
        lease_expires_at: instant(row, at(11))?,
        claimed_by: Some(robot.clone()),
        claimed_at: instant(row, at(12))?,
        retention: span(row, at(13))?,
        ..flagged(State::Claimed, get(row, at(4))?)
    };
    let identity = identity(row, at(14))?;
    let detail = match get::<Option<&str>>(row, at(24))? {
        Some(told) => told_detail(told).map_err(|fault| unfit(at(24), fault))?,
        None => Detail::default(),
    };
    Ok(Job { row: number(row, at(0))?, identity, standing, detail })
}

/// Where a claim has left a job's row, and the job's lane; `None` if that is no help to who settles it.
pub(super) fn place(row: &Row) -> Result<Option<(JobId, Tid, Option<i64>)>> {
    let at = |offset: usize| EXCHANGED + offset;
    let Some(place) = get(row, at(25))? else { return Ok(None) };
    Ok(Some((JobId::trusted(get::<&str>(row, at(14))?), place, get(row, at(3))?)))
}

/// A detail as JSON: wait, progress, started, output, exception; those that are JSON themselves as text.
fn told_detail(told: &str) -> serde_json::Result<Detail> {
    type Told = (Option<String>, Option<String>, Option<i64>, Option<String>, Option<String>);
    let (wait, progress, started_at, output, exception): Told = serde_json::from_str(told)?;
    Ok(Detail {
        wait: wait.map(Name::trusted),
        progress,
        started_at: started_at.map(Timestamp::from_millis),
        output: output.map(Json::trusted),
        exception: exception.as_deref().map(serde_json::from_str).transpose()?,
    })
}

/// An entry of the record: job, `at`, kind, lane, fence, actor, reason, `run_at`, exception.
pub(super) fn entry(row: &Row) -> Result<Entry> {
    let kind: &str = get(row, 2)?;
    let event = serde_json::from_value(kind.into()).map_err(|_| unfit(2, format!("{kind:?} is no happening")))?;
    Ok(Entry {
        row: get::<Option<i64>>(row, 0)?.map(i64::cast_unsigned),
        at: Timestamp::from_millis(get(row, 1)?),
        event,
        lane: label(row, 3)?,
        fence: get::<Option<i64>>(row, 4)?.map(i64::cast_unsigned),
        actor: label(row, 5)?,
        reason: get(row, 6)?,
        run_at: instant(row, 7)?,
        exception: get::<Option<&str>>(row, 8)?.map(Json::trusted),
    })
}

/// How much higher the counter of a business failure stands than that of its state.
const BUSINESS: i16 = 16;
/// How many counters a namespace has.
const COUNTERS: usize = 24;

/// What a row of changes holds for these changes of the counts.
pub(super) fn amounts<'t>(changes: impl Iterator<Item = (&'t Tally, &'t i64)>) -> Vec<i32> {
    let mut amounts = vec![0; COUNTERS];
    for (Tally(state, business), change) in changes {
        let counter = usize::from(state.code()) + if *business { usize::from(BUSINESS.unsigned_abs()) } else { 0 };
        amounts[counter] += i32::try_from(*change).unwrap_or_default();
    }
    amounts
}

/// The tally of a counter.
pub(super) fn tally(counter: i16) -> Result<Tally> {
    Ok(Tally(state_of(counter % BUSINESS)?, counter >= BUSINESS))
}

/// A lane: lane, name, live, paused.
pub(super) fn lane(row: &Row) -> Result<Lane> {
    Ok(Lane {
        number: LaneNumber(number(row, 0)?),
        name: Label::trusted(get::<&str>(row, 1)?),
        live: number(row, 2)?,
        paused: get(row, 3)?,
    })
}

/// The holder of a key: id, state, digest, `expires_at`, from column `from` on.
pub(super) fn key_record(row: &Row, from: usize) -> Result<KeyRecord> {
    Ok(KeyRecord {
        id: JobId::trusted(get::<&str>(row, from)?),
        state: state_of(get(row, from + 1)?)?,
        digest: get(row, from + 2)?,
        expires_at: instant(row, from + 3)?,
    })
}
