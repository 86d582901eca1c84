//! Rows of the database to values of the rules, and back.

use acta_core::job::{KeyHold, Settled};
use acta_core::{Identity, JobId, Json, Label, Name, Span, Standing, State, Timestamp};
use rusqlite::types::{Type, Value};
use rusqlite::{Error, Result, Row, params_from_iter};

use acta_core::rows::LaneNumber;

/// How many columns a standing takes up in a statement's answer.
pub(super) const STANDING_WIDTH: usize = 27;
/// How many columns an identity takes up.
pub(super) const IDENTITY_WIDTH: usize = 9;

fn unfit(column: usize, why: &str) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, why.into())
}

pub(super) fn instant(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(super) fn state(row: &Row<'_>, column: usize) -> Result<State> {
    State::from_code(row.get(column)?).ok_or_else(|| unfit(column, "is not the code of a state"))
}

fn label(row: &Row<'_>, column: usize) -> Result<Option<Label>> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| unfit(column, "is not text"))?;
    Ok(text.map(Label::trusted))
}

pub(super) fn json(row: &Row<'_>, column: usize) -> Result<Json> {
    let text = row.get_ref(column)?.as_str().map_err(|_| unfit(column, "is not text"))?;
    Ok(Json::trusted(text))
}

pub(super) fn id(row: &Row<'_>, column: usize) -> Result<JobId> {
    let text = row.get_ref(column)?.as_str().map_err(|_| unfit(column, "is not text"))?;
    Ok(JobId::trusted(text))
}

fn span(row: &Row<'_>, column: usize) -> Result<Option<Span>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Span::from_millis))
}

pub(super) fn number(row: &Row<'_>, column: usize) -> Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

/// The standing whose columns begin at `from`, in the order that every statement names them in.
pub(super) fn standing(row: &Row<'_>, from: usize) -> Result<Standing> {
    let at = |offset: usize| from + offset;
    let settled_mark: Option<i64> = row.get(at(22))?;
    let settled = match settled_mark {
        Some(mark) => Some(Settled { mark, state: state(row, at(23))?, run_at: instant(row, at(24))? }),
        None => None,
    };
    Ok(Standing {
        state: state(row, at(0))?,
        place: number(row, at(1))?,
        priority: row.get(at(2))?,
        lane: row.get::<_, Option<i64>>(at(3))?.map(|number| LaneNumber(number.cast_unsigned())),
        lane_paused: row.get(at(4))?,
        paused: row.get(at(5))?,
        cancel_requested: row.get(at(6))?,
        attempts: row.get(at(7))?,
        max_attempts: row.get(at(8))?,
        retryable: row.get(at(9))?,
        fence: number(row, at(10))?,
        lost_leases: row.get(at(11))?,
        run_at: instant(row, at(12))?,
        expires_at: instant(row, at(13))?,
        wait_until: instant(row, at(14))?,
        lease_expires_at: instant(row, at(15))?,
        claimed_by: label(row, at(16))?,
        claimed_at: instant(row, at(17))?,
        finished_at: instant(row, at(18))?,
        retention: span(row, at(19))?,
        prune_at: instant(row, at(20))?,
        business: row.get(at(21))?,
        settled,
        key_hold: match row.get::<_, i64>(at(25))? {
            1 => KeyHold::Kept,
            2 => KeyHold::WhileLive,
            _ => KeyHold::None,
        },
        has_detail: row.get(at(26))?,
    })
}

/// Row number, standing and identity: a whole candidate.
pub(super) fn candidate(row: &Row<'_>) -> Result<(u64, Standing, Identity)> {
    Ok((number(row, 0)?, standing(row, 1)?, identity(row, 1 + STANDING_WIDTH)?))
}

/// Row number and standing: the shape of most answers.
pub(super) fn row_and_standing(row: &Row<'_>) -> Result<(u64, Standing)> {
    Ok((number(row, 0)?, standing(row, 1)?))
}

/// The identity whose columns begin at `from`.
pub(super) fn identity(row: &Row<'_>, from: usize) -> Result<Identity> {
    let at = |offset: usize| from + offset;
    let backoff: Option<String> = row.get(at(7))?;
    Ok(Identity {
        id: id(row, at(0))?,
        name: row.get_ref(at(1))?.as_str_or_null().map_err(|_| unfit(at(1), "is not text"))?.map(Name::trusted),
        lane: label(row, at(2))?,
        key: label(row, at(3))?,
        dedup_key: label(row, at(4))?,
        payload: json(row, at(5))?,
        created_at: Timestamp::from_millis(row.get(at(6))?),
        backoff: backoff
            .map(|text| serde_json::from_str(&text).map_err(|_| unfit(at(7), "is not a back-off")))
            .transpose()?,
        lease: span(row, at(8))?,
    })
}

/// The values of a standing, in the order of the statements that write one: the columns of an answer, then what the
/// indexes need.
pub(super) fn standing_values(standing: &Standing) -> [Value; STANDING_WIDTH + 2] {
    let whole = |number: u64| Value::Integer(number.cast_signed());
    let flag = |is: bool| Value::Integer(i64::from(is));
    let at = |instant: Option<Timestamp>| instant.map_or(Value::Null, |at| Value::Integer(at.as_millis()));
    let held = standing.state.is_held();
    [
        Value::Integer(i64::from(standing.state.code())),
        whole(standing.place),
        Value::Integer(i64::from(standing.priority)),
        standing.lane.map_or(Value::Null, |lane| whole(lane.0)),
        flag(standing.lane_paused),
        flag(standing.paused),
        flag(standing.cancel_requested),
        Value::Integer(i64::from(standing.attempts)),
        Value::Integer(i64::from(standing.max_attempts)),
        flag(standing.retryable),
        whole(standing.fence),
        Value::Integer(i64::from(standing.lost_leases)),
        at(standing.run_at),
        at(standing.expires_at),
        at(standing.wait_until),
        at(standing.lease_expires_at),
        standing.claimed_by.as_ref().map_or(Value::Null, |robot| Value::Text(robot.as_str().to_owned())),
        at(standing.claimed_at),
        at(standing.finished_at),
        standing.retention.map_or(Value::Null, |span| Value::Integer(span.as_millis())),
        at(standing.prune_at),
        flag(standing.business),
        standing.settled.map_or(Value::Null, |settled| Value::Integer(settled.mark)),
        standing.settled.map_or(Value::Null, |settled| Value::Integer(i64::from(settled.state.code()))),
        at(standing.settled.and_then(|settled| settled.run_at)),
        Value::Integer(match standing.key_hold {
            KeyHold::None => 0,
            KeyHold::Kept => 1,
            KeyHold::WhileLive => 2,
        }),
        flag(standing.has_detail),
        flag(standing.is_aside()),
        // A lease has an index of its own, so that "leased until" and "deferred until" are each one look.
        at(standing.due_at().filter(|_| !held)),
    ]
}

/// Binds values in order.
pub(super) fn bind(values: impl IntoIterator<Item = Value>) -> impl rusqlite::Params {
    params_from_iter(values)
}

/// An entry of the record.
pub(super) fn entry(row: &Row<'_>) -> Result<acta_core::history::Entry> {
    let kind: String = row.get(2)?;
    let event = serde_json::from_value(serde_json::Value::String(kind)).map_err(|_| unfit(2, "is no happening"))?;
    Ok(acta_core::history::Entry {
        row: row.get::<_, Option<i64>>(0)?.map(i64::cast_unsigned),
        at: Timestamp::from_millis(row.get(1)?),
        event,
        lane: label(row, 3)?,
        fence: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
        actor: label(row, 5)?,
        reason: row.get(6)?,
        run_at: instant(row, 7)?,
        exception: row.get::<_, Option<String>>(8)?.map(Json::trusted),
    })
}

/// A lane.
pub(super) fn lane(row: &Row<'_>) -> Result<acta_core::rows::Lane> {
    Ok(acta_core::rows::Lane {
        number: LaneNumber(number(row, 0)?),
        name: Label::trusted(row.get::<_, String>(1)?),
        live: number(row, 2)?,
        paused: row.get(3)?,
    })
}
