//! What changes of a job, as the values of a statement.

use acta_core::{Label, Span, Standing, Timestamp};
use tokio_postgres::types::{ToSql, Type};

use super::codec;
use super::connection::Param;
use super::session::count_of;

/// The values of a standing, in the order in which every statement that writes one names them.
pub(super) struct Cells<'j> {
    state: i16,
    place: i64,
    priority: i16,
    lane: Option<i64>,
    flags: i16,
    attempts: i32,
    max_attempts: i32,
    fence: i64,
    lost_leases: i32,
    run_at: Option<i64>,
    expires_at: Option<i64>,
    wait_until: Option<i64>,
    lease_expires_at: Option<i64>,
    claimed_by: Option<&'j str>,
    claimed_at: Option<i64>,
    finished_at: Option<i64>,
    retention_ms: Option<i64>,
    prune_at: Option<i64>,
    settled: Option<i64>,
    settled_run_at: Option<i64>,
    due_at: Option<i64>,
}

/// An instant as a database value.
pub(super) fn millis(instant: Option<Timestamp>) -> Option<i64> {
    instant.map(Timestamp::as_millis)
}

impl<'j> Cells<'j> {
    pub(super) fn of(standing: &'j Standing) -> Self {
        Self {
            state: i16::from(standing.state.code()),
            place: standing.place.cast_signed(),
            priority: i16::from(standing.priority),
            lane: standing.lane.map(|lane| lane.0.cast_signed()),
            flags: codec::flags_of(standing),
            attempts: count_of(standing.attempts),
            max_attempts: count_of(standing.max_attempts),
            fence: standing.fence.cast_signed(),
            lost_leases: count_of(standing.lost_leases),
            run_at: millis(standing.run_at),
            expires_at: millis(standing.expires_at),
            wait_until: millis(standing.wait_until),
            lease_expires_at: millis(standing.lease_expires_at),
            claimed_by: standing.claimed_by.as_ref().map(Label::as_str),
            claimed_at: millis(standing.claimed_at),
            finished_at: millis(standing.finished_at),
            retention_ms: standing.retention.map(Span::as_millis),
            prune_at: millis(standing.prune_at),
            settled: standing.settled.map(codec::packed),
            settled_run_at: millis(standing.settled.and_then(|settled| settled.run_at)),
            due_at: millis(standing.due_at()),
        }
    }

    /// The same as parameters, behind those that come first.
    pub(super) fn behind<'p>(&'p self, first: &[Param<'p>]) -> Vec<Param<'p>> {
        let mut all = first.to_vec();
        let mut add = |value: &'p (dyn ToSql + Sync), of: Type| all.push((value, of));
        add(&self.state, Type::INT2);
        add(&self.place, Type::INT8);
        add(&self.priority, Type::INT2);
        add(&self.lane, Type::INT8);
        add(&self.flags, Type::INT2);
        add(&self.attempts, Type::INT4);
        add(&self.max_attempts, Type::INT4);
        add(&self.fence, Type::INT8);
        add(&self.lost_leases, Type::INT4);
        add(&self.run_at, Type::INT8);
        add(&self.expires_at, Type::INT8);
        add(&self.wait_until, Type::INT8);
        add(&self.lease_expires_at, Type::INT8);
        add(&self.claimed_by, Type::TEXT);
        add(&self.claimed_at, Type::INT8);
        add(&self.finished_at, Type::INT8);
        add(&self.retention_ms, Type::INT8);
        add(&self.prune_at, Type::INT8);
        add(&self.settled, Type::INT8);
        add(&self.settled_run_at, Type::INT8);
        add(&self.due_at, Type::INT8);
        all
    }
}
