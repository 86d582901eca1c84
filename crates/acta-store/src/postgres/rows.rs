//! The rules' looks and writes as statements.

use std::collections::BTreeMap;

use acta_core::history::Entry;
use acta_core::job::{LaneNumber, Tally};
use acta_core::rows::{KeyRecord, Lane, Queue, Rows, Tallies};
use acta_core::vitals::{Flow, Minute, Registered};
use acta_core::{
    Definition, Detail, Identity, Job, JobId, Json, Label, Name, Result, Span, Standing, Timestamp, Traceparent,
};

use super::cells::{Cells, millis};
use super::codec::{self, get};
use super::connection::Param;
use super::session::{NamespaceNumber, Session, params, statement, written};

/// One namespace inside one transaction.
pub(super) struct PgRows<'s> {
    pub(super) session: &'s Session,
    pub(super) ns: NamespaceNumber,
    queue: Queue,
    now: Timestamp,
    counts: BTreeMap<Tally, i64>,
}

pub(super) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl<'s> PgRows<'s> {
    pub(super) fn new(session: &'s Session, ns: NamespaceNumber, queue: Queue, now: Timestamp) -> Self {
        Self { session, ns, queue, now, counts: BTreeMap::new() }
    }

    /// Writes how the counts have changed; to be called at the end.
    pub(super) fn finish(&mut self) -> Result<()> {
        let counts = std::mem::take(&mut self.counts);
        if counts.values().all(|change| *change == 0) {
            return Ok(());
        }
        let amounts = codec::amounts(counts.iter());
        let sql = statement!("add_changes");
        self.session.execute(sql, params![self.ns => INT4, self.now.as_millis() => INT8, amounts => INT4_ARRAY])?;
        Ok(())
    }

    /// Adds a job of any age.
    pub(super) fn insert_whole(&mut self, job: &Job) -> Result<()> {
        let Job { row, identity, standing, .. } = job;
        let backoff = identity.backoff.as_ref().map(written).transpose();
        let backoff = backoff.map_err(|fault| self.session.unreadable("a back-off", fault))?;
        let name = identity.name.as_ref().map(Name::as_str);
        self.session.execute(
            statement!("insert_job"),
            params![
                row.cast_signed() => INT8,
                self.ns => INT4,
                identity.id.as_str() => TEXT,
                identity.id.row() != Some(*row) => BOOL,
                name => TEXT,
                identity.lane.as_ref().map(Label::as_str) => TEXT,
                identity.key.as_ref().map(Label::as_str) => TEXT,
                identity.dedup_key.as_ref().map(Label::as_str) => TEXT,
                identity.payload.as_str() => TEXT,
                identity.created_at.as_millis() => INT8,
                backoff => TEXT,
                identity.lease.map(Span::as_millis) => INT8,
                identity.traceparent.as_ref().map(Traceparent::as_str) => TEXT,
            ],
        )?;
        let cells = Cells::of(standing);
        let first = params![row.cast_signed() => INT8, self.ns => INT4, name => TEXT];
        self.session.execute(statement!("insert_standing"), &cells.behind(first))?;
        Ok(())
    }

    fn standings(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<(u64, Standing)>> {
        self.session.all(sql, params)?.iter().map(|row| codec::row_and_standing(row, 0)).collect()
    }

    fn one_standing(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<(u64, Standing)>> {
        self.session.first(sql, params)?.map(|row| codec::row_and_standing(&row, 0)).transpose()
    }

    fn numbers(&self, names: Option<&[Name]>) -> Result<Option<Vec<i32>>> {
        let Some(names) = names else { return Ok(None) };
        let names: Vec<&str> = names.iter().map(Name::as_str).collect();
        get(&self.session.one(statement!("numbers"), params![names => TEXT_ARRAY])?, 0)
    }

    fn earliest(&self, sql: &str, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        let numbers = self.numbers(names)?;
        let found = self.session.first(sql, params![self.ns => INT4, numbers => INT4_ARRAY])?;
        found.map_or(Ok(None), |row| codec::instant(&row, 0))
    }

    fn one_lane(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Lane>> {
        self.session.first(sql, params)?.as_ref().map(codec::lane).transpose()
    }

    fn missing(&self, row: u64) -> acta_core::Error {
        self.session.unreadable(&format!("job row {row}"), "is not there")
    }

    /// The row of the job with this id, in this namespace.
    fn row_of(&self, id: &JobId) -> Result<Option<i64>> {
        Ok(self.find_row(id)?.map(|(row, _)| row.cast_signed()))
    }

    fn find_row(&self, id: &JobId) -> Result<Option<(u64, Standing)>> {
        if let Some(row) = id.row() {
            let params = params![row.cast_signed() => INT8, id.as_str() => TEXT, self.ns => INT4];
            if let Some(found) = self.one_standing(statement!("find"), params)? {
                return Ok(Some(found));
            }
        }
        self.one_standing(statement!("find_foreign"), params![id.as_str() => TEXT, self.ns => INT4])
    }
}

impl Rows for PgRows<'_> {
    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn set_queue_paused(&mut self, paused: bool) -> Result<()> {
        self.session.execute(statement!("save_namespace_paused"), params![self.ns => INT4, paused => BOOL])?;
        self.queue.paused = paused;
        Ok(())
    }

    fn definition(&mut self, name: &Name) -> Result<Option<Definition>> {
        Ok(self.session.name(name)?.and_then(|(_, definition)| definition))
    }

    fn next_number(&mut self) -> Result<u64> {
        codec::number(&self.session.one(statement!("next_number"), &[])?, 0)
    }

    fn insert(&mut self, job: Job) -> Result<()> {
        if let Some(name) = &job.identity.name {
            self.session.ensure_name(name)?;
        }
        self.insert_whole(&job)
    }

    fn find(&mut self, id: &JobId) -> Result<Option<(u64, Standing)>> {
        self.find_row(id)
    }

    fn identity(&mut self, row: u64) -> Result<Identity> {
        let found = self.session.first(statement!("identity"), params![row.cast_signed() => INT8])?;
        codec::identity(&found.ok_or_else(|| self.missing(row))?, 0)
    }

    fn standing(&mut self, row: u64) -> Result<Standing> {
        let found = self.one_standing(statement!("standing"), params![row.cast_signed() => INT8])?;
        found.map(|(_, standing)| standing).ok_or_else(|| self.missing(row))
    }

    fn detail(&mut self, row: u64) -> Result<Detail> {
        let found = self.session.first(statement!("detail"), params![row.cast_signed() => INT8])?;
        found.map_or(Ok(Detail::default()), |row| codec::detail(&row, 0))
    }

    fn save(&mut self, row: u64, standing: &Standing) -> Result<()> {
        let cells = Cells::of(standing);
        match self.session.execute(statement!("save"), &cells.behind(params![row.cast_signed() => INT8]))? {
            0 => Err(self.missing(row)),
            _ => Ok(()),
        }
    }

    fn save_detail(&mut self, row: u64, detail: &Detail) -> Result<()> {
        let row = row.cast_signed();
        if *detail == Detail::default() {
            self.session.execute(statement!("delete_detail"), params![row => INT8])?;
            return Ok(());
        }
        let exception = detail.exception.as_ref().map(serde_json::to_string).transpose();
        let exception = exception.map_err(|fault| self.session.unreadable("an exception", fault))?;
        self.session.execute(
            statement!("save_detail"),
            params![
                row => INT8,
                detail.wait.as_ref().map(Name::as_str) => TEXT,
                detail.progress => TEXT,
                millis(detail.started_at) => INT8,
                detail.output.as_ref().map(Json::as_str) => TEXT,
                exception => TEXT,
            ],
        )?;
        Ok(())
    }

    fn delete(&mut self, row: u64) -> Result<()> {
        self.session.execute(statement!("forget"), params![row.cast_signed() => INT8])?;
        Ok(())
    }

    fn count(&mut self, from: Option<Tally>, to: Option<Tally>) {
        if let Some(from) = from {
            *self.counts.entry(from).or_default() -= 1;
        }
        if let Some(to) = to {
            *self.counts.entry(to).or_default() += 1;
        }
    }

    fn tallies(&mut self) -> Result<Tallies> {
        let mut tallies = Tallies::new();
        for row in self.session.all(statement!("tallies"), params![self.ns => INT4])? {
            tallies.insert(codec::tally(get(&row, 0)?)?, codec::number(&row, 1)?);
        }
        for (tally, change) in &self.counts {
            let count = tallies.entry(*tally).or_default();
            *count = count.saturating_add_signed(*change);
        }
        tallies.retain(|_, count| *count > 0);
        Ok(tallies)
    }

    /// The changes of the counts say it.
    fn flow(&mut self, _minute: Timestamp, _flow: Flow) {}

    fn minutes(&mut self, from: Timestamp) -> Result<Vec<Minute>> {
        self.kept_minutes(from)
    }

    fn remove_minutes(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        self.forget_minutes(before, limit)
    }

    fn worker(&mut self, id: &Label) -> Result<Option<Registered>> {
        self.kept_worker(id)
    }

    fn workers(&mut self, limit: usize) -> Result<Vec<Registered>> {
        self.kept_workers(limit)
    }

    fn save_worker(&mut self, worker: &Registered) -> Result<()> {
        self.keep_worker(worker)
    }

    fn remove_worker(&mut self, id: &Label) -> Result<()> {
        self.forget_worker(id)
    }

    fn remove_workers(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        self.forget_workers(before, limit)
    }

    fn due(&mut self, now: Timestamp, lapses: bool, limit: usize) -> Result<Vec<(u64, Standing)>> {
        let params = params![self.ns => INT4, now.as_millis() => INT8, lapses => BOOL, most(limit) => INT8];
        self.standings(statement!("due"), params)
    }

    fn candidates(
        &mut self,
        now: Timestamp,
        names: Option<&[Name]>,
        limit: usize,
    ) -> Result<Vec<(u64, Standing, Identity)>> {
        let numbers = self.numbers(names)?;
        let params = params![self.ns => INT4, numbers => INT4_ARRAY, now.as_millis() => INT8, most(limit) => INT8];
        let found = self.session.all(statement!("candidates"), params)?;
        let jobs = found.iter().map(|row| codec::job(row, 0));
        jobs.map(|job| job.map(|job| (job.row, job.standing, job.identity))).collect()
    }

    fn any_head_named(&mut self, names: &[Name]) -> Result<bool> {
        let numbers = self.numbers(Some(names))?;
        let params = params![self.ns => INT4, numbers => INT4_ARRAY];
        get(&self.session.one(statement!("any_head_named"), params)?, 0)
    }

    fn first_lapse(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        self.earliest(statement!("first_lapse"), names)
    }

    fn first_due(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        self.earliest(statement!("first_due"), names)
    }

    fn heads(&mut self, limit: usize) -> Result<Vec<(u64, Standing)>> {
        self.standings(statement!("heads"), params![self.ns => INT4, most(limit) => INT8])
    }

    fn prunable(&mut self, now: Timestamp, limit: usize) -> Result<Vec<(u64, Standing)>> {
        let params = params![self.ns => INT4, now.as_millis() => INT8, most(limit) => INT8];
        self.standings(statement!("prunable"), params)
    }

    fn last_hold(&mut self, lane: Option<&Label>) -> Result<Option<Entry>> {
        let lane = lane.map(Label::as_str);
        let found = self.session.first(statement!("last_hold"), params![self.ns => INT4, lane => TEXT])?;
        found.as_ref().map(codec::entry).transpose()
    }

    fn lanes(&mut self, after: Option<&Label>, limit: usize) -> Result<Vec<Lane>> {
        let after = after.map_or("", Label::as_str);
        let params = params![self.ns => INT4, after => TEXT, most(limit) => INT8];
        self.session.all(statement!("lanes"), params)?.iter().map(codec::lane).collect()
    }

    fn lane(&mut self, name: &Label) -> Result<Option<Lane>> {
        self.one_lane(statement!("lane"), params![self.ns => INT4, name.as_str() => TEXT])
    }

    fn lane_numbered(&mut self, number: LaneNumber) -> Result<Lane> {
        let found = self.one_lane(statement!("lane_numbered"), params![number.0.cast_signed() => INT8])?;
        found.ok_or_else(|| self.session.unreadable(&format!("lane {}", number.0), "is not there"))
    }

    fn add_lane(&mut self, name: &Label) -> Result<Lane> {
        let made = self.one_lane(statement!("add_lane"), params![self.ns => INT4, name.as_str() => TEXT])?;
        made.ok_or_else(|| self.session.unreadable(&format!("lane {name}"), "was not made"))
    }

    fn save_lane(&mut self, lane: &Lane) -> Result<()> {
        let params = params![lane.number.0.cast_signed() => INT8, lane.live.cast_signed() => INT8, lane.paused => BOOL];
        self.session.execute(statement!("save_lane"), params)?;
        Ok(())
    }

    fn remove_lane(&mut self, number: LaneNumber) -> Result<()> {
        self.session.execute(statement!("remove_lane"), params![number.0.cast_signed() => INT8])?;
        Ok(())
    }

    fn lane_head(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>> {
        self.one_standing(statement!("lane_head"), params![number.0.cast_signed() => INT8])
    }

    fn lane_next(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>> {
        self.one_standing(statement!("lane_next"), params![number.0.cast_signed() => INT8])
    }

    fn key(&mut self, key: &Label) -> Result<Option<KeyRecord>> {
        let found = self.session.first(statement!("key"), params![self.ns => INT4, key.as_str() => TEXT])?;
        found.map(|row| codec::key_record(&row, 0)).transpose()
    }

    fn save_key(&mut self, key: &Label, record: &KeyRecord) -> Result<()> {
        let row = self.row_of(&record.id)?;
        self.session.execute(
            statement!("save_key"),
            params![
                self.ns => INT4,
                key.as_str() => TEXT,
                record.id.as_str() => TEXT,
                i16::from(record.state.code()) => INT2,
                record.digest => INT8,
                millis(record.expires_at) => INT8,
                row => INT8,
            ],
        )?;
        Ok(())
    }

    fn remove_key(&mut self, key: &Label) -> Result<()> {
        self.session.execute(statement!("remove_key"), params![self.ns => INT4, key.as_str() => TEXT])?;
        Ok(())
    }

    fn remove_expired_keys(&mut self, now: Timestamp, limit: usize) -> Result<usize> {
        let params = params![self.ns => INT4, now.as_millis() => INT8, most(limit) => INT8];
        let gone = self.session.execute(statement!("remove_expired_keys"), params)?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }

    fn record(&mut self, entry: &Entry) -> Result<()> {
        let kind = serde_json::to_string(&entry.event).unwrap_or_default();
        self.session.execute(
            statement!("record"),
            params![
                self.ns => INT4,
                entry.row.map(u64::cast_signed) => INT8,
                entry.at.as_millis() => INT8,
                kind.trim_matches('"') => TEXT,
                entry.lane.as_ref().map(Label::as_str) => TEXT,
                entry.fence.map(u64::cast_signed) => INT8,
                entry.actor.as_ref().map(Label::as_str) => TEXT,
                entry.reason => TEXT,
                millis(entry.run_at) => INT8,
                entry.exception.as_ref().map(Json::as_str) => TEXT,
            ],
        )?;
        Ok(())
    }

    fn push_signal(&mut self, row: u64, name: &Name, payload: &Json) -> Result<()> {
        let params = params![row.cast_signed() => INT8, name.as_str() => TEXT, payload.as_str() => TEXT];
        self.session.execute(statement!("push_signal"), params)?;
        Ok(())
    }

    fn pop_signal(&mut self, row: u64, name: &Name) -> Result<Option<Json>> {
        let params = params![row.cast_signed() => INT8, name.as_str() => TEXT];
        self.session.first(statement!("pop_signal"), params)?.map(|row| codec::json(&row, 0)).transpose()
    }

    fn steps(&mut self, row: u64) -> Result<Vec<(String, Json)>> {
        let found = self.session.all(statement!("steps"), params![row.cast_signed() => INT8])?;
        found.iter().map(|row| Ok((get(row, 0)?, codec::json(row, 1)?))).collect()
    }

    fn save_step(&mut self, row: u64, name: &str, value: &Json) -> Result<()> {
        let params = params![row.cast_signed() => INT8, name => TEXT, value.as_str() => TEXT];
        self.session.execute(statement!("save_step"), params)?;
        Ok(())
    }

    fn forget(&mut self, row: u64) -> Result<()> {
        self.session.execute(statement!("delete_signals"), params![row.cast_signed() => INT8])?;
        self.session.execute(statement!("delete_steps"), params![row.cast_signed() => INT8])?;
        Ok(())
    }
}
