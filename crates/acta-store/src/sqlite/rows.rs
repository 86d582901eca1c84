//! The rules' looks and writes as statements.

use acta_core::history::Entry;
use acta_core::job::{LaneNumber, Tally};
use acta_core::rows::{KeyRecord, Lane, Queue, Rows, Tallies};
use acta_core::vitals::{Flow, Minute, Registered};
use acta_core::{Definition, Detail, Identity, Job, JobId, Json, Label, Name, Result, Standing, Timestamp};
use rusqlite::Row;

use super::codec;
use super::connection::{Statement, chunk_of, statement};
use super::session::{NamespaceNumber, Session};

/// One namespace inside one transaction.
pub(super) struct SqlRows<'s, 'a> {
    pub(super) session: &'s mut Session<'a>,
    pub(super) ns: NamespaceNumber,
    pub(super) queue: Queue,
    /// Keys to be saved.
    keys: Vec<(Label, KeyRecord)>,
}

/// An instant as a database value.
fn millis(instant: Option<Timestamp>) -> Option<i64> {
    instant.map(Timestamp::as_millis)
}

fn count_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl<'s, 'a> SqlRows<'s, 'a> {
    pub(super) fn new(session: &'s mut Session<'a>, ns: NamespaceNumber, queue: Queue) -> Self {
        session.memory.standings.turn_to(ns);
        Self { session, ns, queue, keys: Vec::new() }
    }

    pub(super) fn missing(&self, row: u64) -> acta_core::Error {
        self.session.db.unreadable(&format!("job row {row}"), "is not there")
    }

    /// Writes what was changed; to be called before any look into an index, and at the end.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.flush_keys()?;
        self.session.memory.standings.flush(self.session.db)
    }

    fn flush_keys(&mut self) -> Result<()> {
        let mut rest = &self.keys[..];
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(chunk_of(rest.len()));
            let cells = chunk.iter().flat_map(|(key, record)| codec::key_cells(self.ns, key, record));
            self.session.db.insert_many(statement!("save_key"), chunk.len(), &cells.collect::<Vec<_>>())?;
            rest = behind;
        }
        self.keys.clear();
        Ok(())
    }

    fn one_standing(&mut self, statement: Statement, params: impl rusqlite::Params) -> Result<Option<(u64, Standing)>> {
        self.flush()?;
        let found = self.session.db.first(statement, params, codec::row_and_standing)?;
        self.remember(found.iter());
        Ok(found)
    }

    fn standings(&mut self, statement: Statement, params: impl rusqlite::Params) -> Result<Vec<(u64, Standing)>> {
        self.flush()?;
        let found = self.session.db.all(statement, params, codec::row_and_standing)?;
        self.remember(found.iter());
        Ok(found)
    }

    fn candidates_of(
        &mut self,
        statement: Statement,
        params: impl rusqlite::Params,
    ) -> Result<Vec<(u64, Standing, Identity)>> {
        let found = self.session.db.all(statement, params, codec::candidate)?;
        for (row, standing, identity) in &found {
            self.session.memory.standings.remember(*row, Some(&identity.id), standing);
        }
        Ok(found)
    }

    fn remember<'r>(&mut self, found: impl Iterator<Item = &'r (u64, Standing)>) {
        for (row, standing) in found {
            self.session.memory.standings.remember(*row, None, standing);
        }
    }

    /// The numbers of the definitions whose candidates are wanted.
    fn names_to_scan(&mut self, names: Option<&[Name]>) -> Result<Vec<i64>> {
        if let Some(names) = names {
            let mut numbers = Vec::with_capacity(names.len());
            for name in names {
                numbers.extend(self.session.name(name)?.map(|(number, _)| number));
            }
            numbers.sort_unstable();
            numbers.dedup();
            return Ok(numbers);
        }
        let mut numbers = Vec::new();
        let mut last = -1;
        while let Some(next) =
            self.session.db.first(statement!("next_ready_name"), (self.ns, last), |row| row.get(0))?
        {
            numbers.push(next);
            last = next;
        }
        Ok(numbers)
    }

    /// The earliest instant that a statement finds, over all jobs or those of some definitions.
    fn earliest(&mut self, all: Statement, of_one: Statement, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        self.flush()?;
        let read = |row: &Row<'_>| row.get::<_, i64>(0).map(Timestamp::from_millis);
        if names.is_none() {
            return self.session.db.first(all, [self.ns], read);
        }
        let mut earliest: Option<Timestamp> = None;
        for number in self.names_to_scan(names)? {
            let found = self.session.db.first(of_one, (self.ns, number), read)?;
            earliest = match (earliest, found) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Ok(earliest)
    }
}

impl Rows for SqlRows<'_, '_> {
    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn set_queue_paused(&mut self, paused: bool) -> Result<()> {
        self.session.db.execute(statement!("save_namespace_paused"), (self.ns, paused))?;
        self.queue.paused = paused;
        self.session.forget_namespace(&self.queue.namespace);
        Ok(())
    }

    fn definition(&mut self, name: &Name) -> Result<Option<Definition>> {
        Ok(self.session.name(name)?.and_then(|(_, definition)| definition))
    }

    fn next_number(&mut self) -> Result<u64> {
        self.session.next_number()
    }

    fn insert(&mut self, job: Job) -> Result<()> {
        let name = match &job.identity.name {
            Some(name) => self.session.ensure_name(name)?,
            None => 0,
        };
        self.session.memory.standings.add(job, self.ns, name);
        Ok(())
    }

    fn wake(&mut self) {
        self.session.wake(&self.queue.namespace);
    }

    fn find(&mut self, id: &JobId) -> Result<Option<(u64, Standing)>> {
        if let Some(row) = id.row() {
            if self.session.memory.standings.get_by_id(row, id).is_none() {
                self.prefetch(&mut std::iter::once(id))?;
            }
            if let Some(standing) = self.session.memory.standings.get_by_id(row, id) {
                return Ok(Some((row, standing.clone())));
            }
        }
        self.one_standing(statement!("find_foreign"), (id.as_str(), self.ns))
    }

    fn prefetch(&mut self, ids: &mut dyn Iterator<Item = &JobId>) -> Result<()> {
        self.flush()?;
        let standings = &self.session.memory.standings;
        let unknown = |id: &JobId| id.row().filter(|&row| standings.get_by_id(row, id).is_none());
        let rows: Vec<i64> = ids.filter_map(unknown).map(u64::cast_signed).collect();
        // The number alone proves nothing: the whole id is kept, to be compared with the one that is asked for.
        for (row, id, standing) in self.session.db.find_many(self.ns, &rows)? {
            self.session.memory.standings.remember(row, Some(&id), &standing);
        }
        Ok(())
    }

    fn identity(&mut self, row: u64) -> Result<Identity> {
        // What changes of a job is in another table; only new ones have to be there.
        self.session.memory.standings.insert(self.session.db)?;
        let read = |row: &Row<'_>| codec::identity(row, 0);
        let found = self.session.db.first(statement!("identity"), [row.cast_signed()], read)?;
        found.ok_or_else(|| self.missing(row))
    }

    fn standing(&mut self, row: u64) -> Result<Standing> {
        if let Some(standing) = self.session.memory.standings.get(row) {
            return Ok(standing.clone());
        }
        let found = self.one_standing(statement!("standing"), [row.cast_signed()])?;
        found.map(|(_, standing)| standing).ok_or_else(|| self.missing(row))
    }

    fn detail(&mut self, row: u64) -> Result<Detail> {
        let read = |row: &Row<'_>| {
            Ok((
                row.get::<_, Option<String>>(0)?,
                row.get::<_, Option<String>>(1)?,
                codec::instant(row, 2)?,
                row.get::<_, Option<String>>(3)?,
                row.get::<_, Option<String>>(4)?,
            ))
        };
        let found = self.session.db.first(statement!("detail"), [row.cast_signed()], read)?;
        let Some((wait, progress, started_at, output, exception)) = found else { return Ok(Detail::default()) };
        let unfit = |fault: &dyn std::fmt::Display| self.session.db.unreadable(&format!("details of row {row}"), fault);
        Ok(Detail {
            wait: wait.map(|name| Name::new("signal", &name)).transpose().map_err(|fault| unfit(&fault))?,
            progress,
            started_at,
            output: output.map(Json::trusted),
            exception: exception.map(|text| serde_json::from_str(&text)).transpose().map_err(|fault| unfit(&fault))?,
        })
    }

    fn save(&mut self, row: u64, standing: &Standing) -> Result<()> {
        if self.session.memory.standings.change(row, standing) { Ok(()) } else { Err(self.missing(row)) }
    }

    fn save_detail(&mut self, row: u64, detail: &Detail) -> Result<()> {
        if *detail == Detail::default() {
            self.session.db.execute(statement!("delete_detail"), [row.cast_signed()])?;
            return Ok(());
        }
        let exception = match &detail.exception {
            Some(exception) => Some(
                serde_json::to_string(exception)
                    .map_err(|fault| self.session.db.unreadable(&format!("exception of row {row}"), fault))?,
            ),
            None => None,
        };
        self.session.db.execute(
            statement!("save_detail"),
            (
                row.cast_signed(),
                detail.wait.as_ref().map(Name::as_str),
                &detail.progress,
                millis(detail.started_at),
                detail.output.as_ref().map(Json::as_str),
                exception,
            ),
        )?;
        Ok(())
    }

    fn delete(&mut self, row: u64) -> Result<()> {
        self.session.memory.standings.forget(row);
        let tables = [
            statement!("delete_standing"),
            statement!("delete_job"),
            statement!("delete_detail"),
            statement!("delete_events"),
            statement!("delete_signals"),
            statement!("delete_steps"),
            statement!("delete_foreign"),
        ];
        for statement in tables {
            self.session.db.execute(statement, [row.cast_signed()])?;
        }
        Ok(())
    }

    fn count(&mut self, from: Option<Tally>, to: Option<Tally>) {
        if let Some(from) = from {
            self.session.count(self.ns, from, -1);
        }
        if let Some(to) = to {
            self.session.count(self.ns, to, 1);
        }
    }

    fn tallies(&mut self) -> Result<Tallies> {
        let read = |row: &Row<'_>| Ok((codec::tally(row, 0)?, codec::number(row, 1)?));
        let mut tallies: Tallies = self.session.db.all(statement!("counts"), [self.ns], read)?.into_iter().collect();
        for (tally, change) in self.session.pending_counts(self.ns) {
            let count = tallies.entry(tally).or_default();
            *count = count.saturating_add_signed(change);
        }
        tallies.retain(|_, count| *count > 0);
        Ok(tallies)
    }

    fn flow(&mut self, minute: Timestamp, flow: Flow) {
        self.session.flow(self.ns, minute, flow);
    }

    fn minutes(&mut self, from: Timestamp) -> Result<Vec<Minute>> {
        self.kept_minutes(from)
    }

    fn remove_minutes(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        self.forget_minutes(before, count_of(limit))
    }

    fn worker(&mut self, id: &Label) -> Result<Option<Registered>> {
        self.kept_worker(id)
    }

    fn workers(&mut self, limit: usize) -> Result<Vec<Registered>> {
        self.kept_workers(count_of(limit))
    }

    fn save_worker(&mut self, worker: &Registered) -> Result<()> {
        self.keep_worker(worker)
    }

    fn remove_worker(&mut self, id: &Label) -> Result<()> {
        self.forget_worker(id)
    }

    fn remove_workers(&mut self, before: Timestamp, limit: usize) -> Result<()> {
        self.forget_workers(before, count_of(limit))
    }

    fn due(&mut self, now: Timestamp, lapses: bool, limit: usize) -> Result<Vec<(u64, Standing)>> {
        let (now, most) = (now.as_millis(), count_of(limit));
        let mut due = self.standings(statement!("due"), (self.ns, now, most))?;
        let moved = due.len();
        due.extend(self.standings(statement!("lapsed"), (self.ns, now, most, lapses))?);
        due.extend(self.standings(statement!("expired"), (self.ns, now, most))?);
        if due.len() > moved {
            // A scheduled job may have expired, too, and is then found twice.
            due.sort_by_key(|(row, standing)| (standing.due_at(), standing.place, *row));
            due.dedup_by_key(|(row, _)| *row);
            due.truncate(limit);
        }
        Ok(due)
    }

    fn candidates(
        &mut self,
        now: Timestamp,
        names: Option<&[Name]>,
        limit: usize,
    ) -> Result<Vec<(u64, Standing, Identity)>> {
        let now = now.as_millis();
        self.flush()?;
        let numbers = self.names_to_scan(names)?;
        if let [number] = numbers[..] {
            let params = (self.ns, number, count_of(limit), now);
            return self.candidates_of(statement!("candidates"), params);
        }
        // Several definitions: their orders are merged from the index alone, and only the winners are read.
        let mut order: Vec<(i64, i64, i64)> = Vec::new();
        for number in numbers {
            let params = (self.ns, number, count_of(limit), now);
            let read = |row: &Row<'_>| Ok((-row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?));
            order.extend(self.session.db.all(statement!("candidate_keys"), params, read)?);
        }
        order.sort_unstable();
        order.truncate(limit);
        let mut candidates = Vec::with_capacity(order.len());
        for (_, _, job) in order {
            candidates.extend(self.candidates_of(statement!("candidate"), [job])?);
        }
        Ok(candidates)
    }

    fn any_head_named(&mut self, names: &[Name]) -> Result<bool> {
        self.flush()?;
        for number in self.names_to_scan(Some(names))? {
            let found = self.session.db.first(statement!("any_head_named"), (self.ns, number), |row| row.get(0))?;
            if found == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn first_lapse(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        self.earliest(statement!("first_lapse"), statement!("first_lapse_named"), names)
    }

    fn first_due(&mut self, names: Option<&[Name]>) -> Result<Option<Timestamp>> {
        self.earliest(statement!("first_due"), statement!("first_due_named"), names)
    }

    fn heads(&mut self, limit: usize) -> Result<Vec<(u64, Standing)>> {
        self.standings(statement!("heads"), (self.ns, count_of(limit)))
    }

    fn prunable(&mut self, now: Timestamp, limit: usize) -> Result<Vec<(u64, Standing)>> {
        self.standings(statement!("prunable"), (self.ns, now.as_millis(), count_of(limit)))
    }

    fn last_hold(&mut self, lane: Option<&Label>) -> Result<Option<Entry>> {
        self.session.db.first(statement!("last_hold"), (self.ns, lane.map(Label::as_str)), codec::entry)
    }

    fn lanes(&mut self, after: Option<&Label>, limit: usize) -> Result<Vec<Lane>> {
        let params = (self.ns, after.map_or("", Label::as_str), count_of(limit));
        self.session.db.all(statement!("lanes"), params, codec::lane)
    }

    fn lane(&mut self, name: &Label) -> Result<Option<Lane>> {
        let read = |row: &Row<'_>| {
            Ok(Lane {
                number: LaneNumber(codec::number(row, 0)?),
                name: name.clone(),
                live: codec::number(row, 1)?,
                paused: row.get(2)?,
            })
        };
        self.session.db.first(statement!("lane"), (self.ns, name.as_str()), read)
    }

    fn lane_numbered(&mut self, number: LaneNumber) -> Result<Lane> {
        let read = |row: &Row<'_>| {
            Ok(Lane {
                number,
                name: Label::trusted(row.get::<_, String>(0)?),
                live: codec::number(row, 1)?,
                paused: row.get(2)?,
            })
        };
        let found = self.session.db.first(statement!("lane_numbered"), [number.0.cast_signed()], read)?;
        found.ok_or_else(|| self.session.db.unreadable(&format!("lane {}", number.0), "is not there"))
    }

    fn add_lane(&mut self, name: &Label) -> Result<Lane> {
        self.session.db.execute(statement!("add_lane"), (self.ns, name.as_str()))?;
        let number = LaneNumber(self.session.db.raw.last_insert_rowid().cast_unsigned());
        Ok(Lane { number, name: name.clone(), live: 0, paused: false })
    }

    fn save_lane(&mut self, lane: &Lane) -> Result<()> {
        let params = (lane.number.0.cast_signed(), lane.live.cast_signed(), lane.paused);
        self.session.db.execute(statement!("save_lane"), params)?;
        Ok(())
    }

    fn remove_lane(&mut self, number: LaneNumber) -> Result<()> {
        self.session.db.execute(statement!("remove_lane"), [number.0.cast_signed()])?;
        Ok(())
    }

    fn lane_head(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>> {
        self.one_standing(statement!("lane_head"), [number.0.cast_signed()])
    }

    fn lane_next(&mut self, number: LaneNumber) -> Result<Option<(u64, Standing)>> {
        self.one_standing(statement!("lane_next"), [number.0.cast_signed()])
    }

    fn key(&mut self, key: &Label) -> Result<Option<KeyRecord>> {
        self.flush_keys()?;
        let read = |row: &Row<'_>| {
            Ok(KeyRecord {
                id: codec::id(row, 0)?,
                state: codec::state(row, 1)?,
                digest: row.get(2)?,
                expires_at: codec::instant(row, 3)?,
            })
        };
        self.session.db.first(statement!("key"), (self.ns, key.as_str()), read)
    }

    fn save_key(&mut self, key: &Label, record: &KeyRecord) -> Result<()> {
        self.keys.push((key.clone(), record.clone()));
        Ok(())
    }

    fn remove_key(&mut self, key: &Label) -> Result<()> {
        self.flush_keys()?;
        self.session.db.execute(statement!("remove_key"), (self.ns, key.as_str()))?;
        Ok(())
    }

    fn remove_expired_keys(&mut self, now: Timestamp, limit: usize) -> Result<usize> {
        self.flush_keys()?;
        self.session.db.execute(statement!("remove_expired_keys"), (self.ns, now.as_millis(), count_of(limit)))
    }

    fn record(&mut self, entry: &Entry) -> Result<()> {
        let kind = serde_json::to_string(&entry.event).unwrap_or_default();
        self.session.db.execute(
            statement!("record"),
            (
                self.ns,
                entry.row.map(u64::cast_signed),
                entry.at.as_millis(),
                kind.trim_matches('"'),
                entry.lane.as_ref().map(Label::as_str),
                entry.fence.map(u64::cast_signed),
                entry.actor.as_ref().map(Label::as_str),
                &entry.reason,
                millis(entry.run_at),
                entry.exception.as_ref().map(Json::as_str),
            ),
        )?;
        Ok(())
    }

    fn push_signal(&mut self, row: u64, name: &Name, payload: &Json) -> Result<()> {
        let params = (row.cast_signed(), name.as_str(), payload.as_str());
        self.session.db.execute(statement!("push_signal"), params)?;
        Ok(())
    }

    fn pop_signal(&mut self, row: u64, name: &Name) -> Result<Option<Json>> {
        let params = (row.cast_signed(), name.as_str());
        self.session.db.first(statement!("pop_signal"), params, |row| codec::json(row, 0))
    }

    fn steps(&mut self, row: u64) -> Result<Vec<(String, Json)>> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, codec::json(row, 1)?));
        self.session.db.all(statement!("steps"), [row.cast_signed()], read)
    }

    fn save_step(&mut self, row: u64, name: &str, value: &Json) -> Result<()> {
        self.session.db.execute(statement!("save_step"), (row.cast_signed(), name, value.as_str()))?;
        Ok(())
    }

    fn forget(&mut self, row: u64) -> Result<()> {
        self.session.db.execute(statement!("delete_signals"), [row.cast_signed()])?;
        self.session.db.execute(statement!("delete_steps"), [row.cast_signed()])?;
        Ok(())
    }
}
