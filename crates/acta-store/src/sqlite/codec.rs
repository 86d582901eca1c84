//! Rows of the database to values of the rules, and back.

use acta_core::job::{KeyHold, Settled, Tally};
use acta_core::rows::KeyRecord;
use acta_core::{Identity, JobId, Json, Label, Name, Span, Standing, State, Timestamp, Traceparent};
use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Error, Result, Row, ToSql, params_from_iter};

use acta_core::job::LaneNumber;

/// How many columns a standing takes up in a statement's answer.
pub(super) const STANDING_WIDTH: usize = 20;
/// How many columns an identity takes up.
pub(super) const IDENTITY_WIDTH: usize = 10;

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

/// The bits of the column `flags`.
mod flag {
    pub(super) const PAUSED: i64 = 1;
    pub(super) const LANE_PAUSED: i64 = 2;
    pub(super) const CANCEL_REQUESTED: i64 = 4;
    pub(super) const NOT_RETRYABLE: i64 = 8;
    pub(super) const BUSINESS: i64 = 16;
    pub(super) const HAS_DETAIL: i64 = 32;
    pub(super) const KEY_KEPT: i64 = 64;
    pub(super) const KEY_WHILE_LIVE: i64 = 128;
}

fn flags_of(standing: &Standing) -> i64 {
    let bit = |is: bool, bit: i64| if is { bit } else { 0 };
    bit(standing.paused, flag::PAUSED)
        | bit(standing.lane_paused, flag::LANE_PAUSED)
        | bit(standing.cancel_requested, flag::CANCEL_REQUESTED)
        | bit(!standing.retryable, flag::NOT_RETRYABLE)
        | bit(standing.business, flag::BUSINESS)
        | bit(standing.has_detail, flag::HAS_DETAIL)
        | bit(standing.key_hold == KeyHold::Kept, flag::KEY_KEPT)
        | bit(standing.key_hold == KeyHold::WhileLive, flag::KEY_WHILE_LIVE)
}

/// The standing whose columns begin at `from`, in the order that every statement names them in.
pub(super) fn standing(row: &Row<'_>, from: usize) -> Result<Standing> {
    let at = |offset: usize| from + offset;
    let flags: i64 = row.get(at(4))?;
    let is = |bit: i64| flags & bit != 0;
    // What claims have left is not looked for in a job that was never claimed: most claims are of such jobs.
    let fence = number(row, at(7))?;
    let was_claimed = fence > 0;
    let instant_of_claim = |column| if was_claimed { instant(row, column) } else { Ok(None) };
    let settled = match if was_claimed { row.get::<_, Option<i64>>(at(18))? } else { None } {
        Some(packed) => Some(Settled {
            mark: packed >> 4,
            state: State::from_code(packed & 15).ok_or_else(|| unfit(at(18), "holds no state"))?,
            run_at: instant(row, at(19))?,
        }),
        None => None,
    };
    Ok(Standing {
        state: state(row, at(0))?,
        place: number(row, at(1))?,
        priority: row.get(at(2))?,
        lane: row.get::<_, Option<i64>>(at(3))?.map(|number| LaneNumber(number.cast_unsigned())),
        lane_paused: is(flag::LANE_PAUSED),
        paused: is(flag::PAUSED),
        cancel_requested: is(flag::CANCEL_REQUESTED),
        attempts: if was_claimed { row.get(at(5))? } else { 0 },
        max_attempts: row.get(at(6))?,
        retryable: !is(flag::NOT_RETRYABLE),
        fence,
        lost_leases: if was_claimed { row.get(at(8))? } else { 0 },
        run_at: instant(row, at(9))?,
        expires_at: instant(row, at(10))?,
        wait_until: instant_of_claim(at(11))?,
        lease_expires_at: instant_of_claim(at(12))?,
        claimed_by: if was_claimed { label(row, at(13))? } else { None },
        claimed_at: instant_of_claim(at(14))?,
        finished_at: instant(row, at(15))?,
        retention: span(row, at(16))?,
        prune_at: instant(row, at(17))?,
        business: is(flag::BUSINESS),
        settled,
        key_hold: match (is(flag::KEY_KEPT), is(flag::KEY_WHILE_LIVE)) {
            (true, _) => KeyHold::Kept,
            (false, true) => KeyHold::WhileLive,
            (false, false) => KeyHold::None,
        },
        has_detail: is(flag::HAS_DETAIL),
    })
}

/// What `save_key` takes.
pub(super) fn key_cells<'k>(ns: i64, key: &'k Label, record: &'k KeyRecord) -> [Cell<'k>; 6] {
    [
        Cell::Integer(ns),
        Cell::Text(key.as_str()),
        Cell::Text(record.id.as_str()),
        Cell::Integer(record.state.code().into()),
        Cell::Integer(record.digest),
        record.expires_at.map_or(Cell::Null, |instant| Cell::Integer(instant.as_millis())),
    ]
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
        // One that can't be read is as good as none: it stops no claim.
        backoff: backoff.and_then(|text| serde_json::from_str(&text).ok()),
        lease: span(row, at(8))?,
        traceparent: row
            .get_ref(at(9))?
            .as_str_or_null()
            .map_err(|_| unfit(at(9), "is not text"))?
            .map(Traceparent::trusted),
    })
}

/// A database value that is borrowed from what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// How many columns of a standing are written: those of an answer but for the lane, and those that belong to an index.
pub(super) const CELLS: usize = STANDING_WIDTH - 1 + 7;

/// The columns of a standing that change, in the order of [`standing_cells`].
pub(super) const COLUMNS: [&str; CELLS] = [
    "state",
    "place",
    "priority",
    "flags",
    "attempts",
    "max_attempts",
    "fence",
    "lost_leases",
    "run_at",
    "expires_at",
    "wait_until",
    "lease_expires_at",
    "claimed_by",
    "claimed_at",
    "finished_at",
    "retention_ms",
    "prune_at",
    "settled",
    "settled_run_at",
    "ready_place",
    "due_at",
    "expires_by",
    "aside",
    "head_of",
    "blocked_in",
    "unsuccessful",
];

/// Which of [`COLUMNS`] a new job has; the others are at their defaults.
pub(super) const NEW: [usize; 14] = [0, 1, 2, 3, 5, 8, 9, 15, 19, 20, 21, 22, 23, 24];

/// The values of [`COLUMNS`] for a standing.
pub(super) fn standing_cells(standing: &Standing) -> [Cell<'_>; CELLS] {
    let whole = |number: u64| Cell::Integer(number.cast_signed());
    let at = |instant: Option<Timestamp>| instant.map_or(Cell::Null, |at| Cell::Integer(at.as_millis()));
    let only = |is: bool, cell| if is { cell } else { Cell::Null };
    let state = Cell::Integer(i64::from(standing.state.code()));
    let lane = standing.lane.map_or(Cell::Null, |lane| whole(lane.0));
    let packed = |settled: Settled| Cell::Integer(settled.mark << 4 | i64::from(settled.state.code()));
    [
        state,
        whole(standing.place),
        Cell::Integer(i64::from(standing.priority)),
        Cell::Integer(flags_of(standing)),
        Cell::Integer(i64::from(standing.attempts)),
        Cell::Integer(i64::from(standing.max_attempts)),
        whole(standing.fence),
        Cell::Integer(i64::from(standing.lost_leases)),
        at(standing.run_at),
        at(standing.expires_at),
        at(standing.wait_until),
        at(standing.lease_expires_at),
        standing.claimed_by.as_ref().map_or(Cell::Null, |robot| Cell::Text(robot.as_str())),
        at(standing.claimed_at),
        at(standing.finished_at),
        standing.retention.map_or(Cell::Null, |span| Cell::Integer(span.as_millis())),
        at(standing.prune_at),
        standing.settled.map_or(Cell::Null, packed),
        at(standing.settled.and_then(|settled| settled.run_at)),
        only(standing.is_candidate(), whole(standing.place)),
        // Lapses, due instants and expiries each have an index of their own, so that each is one look.
        at(standing.moves_at()),
        at(standing.expires_by()),
        only(standing.is_aside(), Cell::Integer(1)),
        only(standing.state.is_head(), lane),
        only(standing.state == State::Blocked, lane),
        only(matches!(standing.state, State::Failed | State::Cancelled), state),
    ]
}

/// Binds values in order.
pub(super) fn bind<T: ToSql>(values: impl IntoIterator<Item = T>) -> impl rusqlite::Params {
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

/// How much higher the counter of a business failure stands than that of its state.
const BUSINESS: i64 = 16;

/// Which counter of its namespace a tally is.
pub(super) fn counter(Tally(state, business): Tally) -> i64 {
    i64::from(state.code()) + if business { BUSINESS } else { 0 }
}

/// The tally of a counter.
pub(super) fn tally(row: &Row<'_>, column: usize) -> Result<Tally> {
    let counter: i64 = row.get(column)?;
    let state = State::from_code(counter % BUSINESS).ok_or_else(|| unfit(column, "is not the counter of a state"))?;
    Ok(Tally(state, counter >= BUSINESS))
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
