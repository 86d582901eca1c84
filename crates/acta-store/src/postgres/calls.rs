//! The verbs that applications and workers live on: each is a function in the database, called in one round trip.

use std::time::Duration;

use acta_core::job::FailureKind;
use acta_core::rules::Refusal;
use acta_core::store::{
    Beat, Claim, ClaimAnswer, ClaimOutcome, Claimant, Enqueue, Enqueued, Heartbeats, Outcome, SettleAnswer, Settlement,
    Wave,
};
use acta_core::{Error, JobId, Label, Name, Result, Span, State, Timestamp, Traceparent};
use tokio_postgres::Row;

use super::PostgresStore;
use super::cells::millis;
use super::codec::{self, get};
use super::connection::Param;
use super::places::Tid;
use super::session::{Session, column, count_of, params, statement, written};
use super::vitals::told;

/// How often a heartbeat asks again for a job whose row is being changed, and how long it waits before.
const BUSY_TRIES: usize = 400;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Jobs to add, as `acta._enqueue` takes them: side by side.
pub(super) struct Columns<'j> {
    path: String,
    payloads: Vec<&'j str>,
    names: Option<Vec<Option<&'j str>>>,
    lanes: Option<Vec<Option<&'j str>>>,
    priorities: Option<Vec<Option<i16>>>,
    run_ats: Option<Vec<Option<i64>>>,
    expiries: Option<Vec<Option<i64>>>,
    leases: Option<Vec<Option<i64>>>,
    keys: Option<Vec<Option<&'j str>>>,
    dedup_keys: Option<Vec<Option<&'j str>>>,
    while_live: Option<Vec<Option<bool>>>,
    budgets: Option<Vec<Option<i32>>>,
    retryables: Option<Vec<Option<bool>>>,
    backoffs: Option<Vec<Option<String>>>,
    traceparents: Option<Vec<Option<&'j str>>>,
    salts: Vec<String>,
    now: Option<i64>,
}

impl<'j> Columns<'j> {
    pub(super) fn of(enqueue: &'j Enqueue, salts: Vec<String>, now: Option<i64>) -> Self {
        let jobs = &enqueue.jobs;
        Self {
            path: enqueue.namespace.to_string(),
            payloads: jobs.iter().map(|job| job.payload.as_str()).collect(),
            names: column(jobs, |job| job.name.as_ref().map(Name::as_str)),
            lanes: column(jobs, |job| job.lane.as_ref().map(Label::as_str)),
            priorities: column(jobs, |job| job.priority.map(i16::from)),
            run_ats: column(jobs, |job| millis(job.run_at)),
            expiries: column(jobs, |job| millis(job.expires_at)),
            leases: column(jobs, |job| job.lease.map(Span::as_millis)),
            keys: column(jobs, |job| job.key.as_ref().map(Label::as_str)),
            dedup_keys: column(jobs, |job| job.dedup.as_ref().map(|dedup| dedup.key.as_str())),
            while_live: column(jobs, |job| job.dedup.as_ref().map(|dedup| dedup.while_live)),
            budgets: column(jobs, |job| job.max_attempts.map(count_of)),
            retryables: column(jobs, |job| job.retryable),
            backoffs: column(jobs, |job| job.backoff.as_ref().and_then(|backoff| written(backoff).ok())),
            traceparents: column(jobs, |job| job.traceparent.as_ref().map(Traceparent::as_str)),
            salts,
            now,
        }
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        params![
            self.path => TEXT,
            self.payloads => TEXT_ARRAY,
            self.names => TEXT_ARRAY,
            self.lanes => TEXT_ARRAY,
            self.priorities => INT2_ARRAY,
            self.run_ats => INT8_ARRAY,
            self.expiries => INT8_ARRAY,
            self.leases => INT8_ARRAY,
            self.keys => TEXT_ARRAY,
            self.dedup_keys => TEXT_ARRAY,
            self.while_live => BOOL_ARRAY,
            self.budgets => INT4_ARRAY,
            self.retryables => BOOL_ARRAY,
            self.backoffs => TEXT_ARRAY,
            self.traceparents => TEXT_ARRAY,
            self.salts => TEXT_ARRAY,
            self.now => INT8,
        ]
        .to_vec()
    }
}

/// What became of them, each answer a column of one row.
pub(super) fn enqueued(rows: &[Row]) -> Result<Vec<Enqueued>> {
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let ids: Vec<&str> = get::<Option<_>>(row, 0)?.unwrap_or_default();
    let created: Vec<bool> = get::<Option<_>>(row, 1)?.unwrap_or_default();
    let states: Vec<i16> = get::<Option<_>>(row, 2)?.unwrap_or_default();
    let differs: Vec<bool> = get::<Option<_>>(row, 3)?.unwrap_or_default();
    let whole = |(((id, created), state), payload_differs)| {
        Ok(Enqueued { id: JobId::trusted(id), created, state: codec::state_of(state)?, payload_differs })
    };
    ids.into_iter().zip(created).zip(states).zip(differs).map(whole).collect()
}

impl PostgresStore {
    pub(super) async fn enqueue_jobs(&self, enqueue: &Enqueue) -> Result<Vec<Enqueued>> {
        let mut drawn = self.words().await;
        let count = enqueue.jobs.len();
        let salts = drawn.peek(count, JobId::salt).unwrap_or_else(|| self.salts(count));
        let columns = Columns::of(enqueue, salts, self.given_now());
        let family = Some(enqueue.namespace.family());
        let params = columns.params();
        let call = (statement!("enqueue"), params.as_slice());
        let rows = match self.wake.take_turn(&enqueue.namespace) {
            Some(_turn) => {
                let word = vec![columns.path.as_str()];
                let then = (statement!("notify"), params![word => TEXT_ARRAY] as &[Param<'_>]);
                self.db.all_and_then(family, call, then).await?
            }
            None => self.db.all(family, call.0, call.1).await?,
        };
        self.wake.note(&enqueue.namespace);
        let answers = enqueued(&rows)?;
        drawn.take(answers.iter().filter(|answer| answer.created).count());
        Ok(answers)
    }

    /// A claim that wants jobs, and nothing explained.
    pub(super) async fn claim_jobs(&self, claim: &Claim) -> Result<ClaimAnswer> {
        let names = names_of(claim);
        let rows = self
            .db
            .all(
                Some(claim.namespace.family()),
                statement!("claim"),
                params![
                    claim.namespace.to_string() => TEXT,
                    claim.robot.as_str() => TEXT,
                    most_of(claim) => INT4,
                    claim.lease.map(Span::as_millis) => INT8,
                    names => TEXT_ARRAY,
                    true => BOOL,
                    self.given_now() => INT8,
                ],
            )
            .await?;
        self.places.keep(&rows)?;
        Ok(answer(codec::claimed(&rows, &claim.robot)?))
    }

    pub(super) async fn settle_wave(&self, wave: &Wave) -> Result<Vec<Result<SettleAnswer>>> {
        let mut drawn = self.words().await;
        let told = self.told(wave, drawn.peek(wave.settlements.len(), u64::cast_signed));
        let family = Some(wave.namespace.family());
        let now = self.given_now();
        let rows = self.db.all(family, statement!("settle"), &told.params(params![now => INT8, false => BOOL])).await?;
        let said = settled(&rows)?;
        drawn.take(said.drew);
        told.answers(said)
    }

    /// The same as the first call of a transaction, which a claim follows: what has arrived is admitted. The answers, and how many random numbers were used.
    pub(super) fn settle_in(
        session: &Session,
        wave: &Wave,
        words: Option<Vec<i64>>,
        now: Option<i64>,
    ) -> Result<(Vec<Result<SettleAnswer>>, usize)> {
        let told = Told::of(wave, words);
        let said = settled(&session.all(statement!("settle"), &told.params(params![now => INT8, true => BOOL]))?)?;
        let drew = said.drew;
        Ok((told.answers(said)?, drew))
    }

    pub(super) async fn exchange_wave(
        &self,
        wave: &Wave,
        claim: &Claim,
    ) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        let mut drawn = self.words().await;
        let told = self.told(wave, drawn.peek(wave.settlements.len(), u64::cast_signed));
        let rows = self
            .db
            .all(
                Some(wave.namespace.family()),
                statement!("exchange"),
                &told.params(params![
                    claim.robot.as_str() => TEXT,
                    most_of(claim) => INT4,
                    claim.lease.map(Span::as_millis) => INT8,
                    names_of(claim) => TEXT_ARRAY,
                    self.given_now() => INT8,
                ]),
            )
            .await?;
        // The answers to the wave come first; there are none where all of it were plain successes, and done.
        let (said, jobs) = match rows.split_first() {
            Some((first, jobs)) if !codec::is_claimed(first)? => (side_by_side(first)?, jobs),
            _ => (Said::all_succeeded(told.asked.len()), &rows[..]),
        };
        drawn.take(said.drew);
        self.places.keep(jobs)?;
        Ok((told.answers(said)?, answer(codec::claimed(jobs, &claim.robot)?)))
    }

    /// A wave as the functions of the database are told of it, with what this process knows of its jobs.
    fn told<'w>(&self, wave: &'w Wave, words: Option<Vec<i64>>) -> Told<'w> {
        let mut told = Told::of(wave, words);
        if let Some((places, lanes)) = self.places.take(wave) {
            (told.places, told.lanes) = (Some(places), lanes);
        }
        told
    }

    pub(super) async fn beat(&self, beats: &Heartbeats) -> Result<Vec<Result<Beat>>> {
        self.places.forget(beats.beats.iter().map(|(id, _)| id));
        let mut answers: Vec<Option<Result<Beat>>> = vec![None; beats.beats.len()];
        for attempt in 0..BUSY_TRIES {
            let open: Vec<usize> = (0..answers.len()).filter(|&index| answers[index].is_none()).collect();
            if open.is_empty() && attempt > 0 {
                break;
            }
            if attempt > 0 {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            self.beat_some(beats, &open, &mut answers).await?;
        }
        let busy = || Err(super::fault::unavailable(self.db.place(), "somebody keeps a job's row locked".into()));
        answers.into_iter().map(|answer| answer.map_or_else(busy, Ok)).collect()
    }

    async fn beat_some(&self, beats: &Heartbeats, open: &[usize], answers: &mut [Option<Result<Beat>>]) -> Result<()> {
        let asked: Vec<&(JobId, Claimant)> = open.iter().map(|&index| &beats.beats[index]).collect();
        let rows: Vec<Option<i64>> = asked.iter().map(|(id, _)| id.row().map(u64::cast_signed)).collect();
        let ids: Vec<&str> = asked.iter().map(|(id, _)| id.as_str()).collect();
        let fences: Vec<Option<i64>> = asked.iter().map(|(_, who)| who.fence.map(u64::cast_signed)).collect();
        let robots: Vec<Option<&str>> = asked.iter().map(|(_, who)| who.robot.as_ref().map(Label::as_str)).collect();
        let (path, lease, now) = (beats.namespace.to_string(), beats.lease.map(Span::as_millis), self.given_now());
        let worker = beats.worker.as_ref().map(told).transpose();
        let worker = worker.map_err(|fault| self.db.unreadable("a worker", fault))?;
        let params: &[Param<'_>] = params![
            path => TEXT,
            rows => INT8_ARRAY,
            ids => TEXT_ARRAY,
            fences => INT8_ARRAY,
            robots => TEXT_ARRAY,
            lease => INT8,
            now => INT8,
            worker => TEXT,
        ];
        let family = Some(beats.namespace.family());
        let found = match worker {
            None => self.db.all(family, statement!("heartbeat"), &params[..7]).await?,
            Some(_) => self.db.all(family, statement!("heartbeat_of"), params).await?,
        };
        for ((row, &index), (id, claimant)) in found.iter().zip(open).zip(asked) {
            let fault: Option<&str> = get(row, 0)?;
            answers[index] = match fault {
                Some("busy") => None,
                Some(fault) => {
                    let (state, fence) = (get(row, 1)?, get(row, 2)?);
                    Some(Err(refusal(fault, id, claimant, state, fence, get(row, 3)?)?))
                }
                None => Some(Ok(Beat {
                    lease_expires_at: Timestamp::from_millis(get(row, 4)?),
                    cancel_requested: get(row, 5)?,
                })),
            };
        }
        Ok(())
    }
}

/// Puts a value behind those of the `before` settlements that came before it.
fn give<T: Clone>(column: &mut Given<T>, before: usize, value: Option<T>) {
    if value.is_some() || column.is_some() {
        column.get_or_insert_with(|| vec![None; before]).push(value);
    }
}

fn most_of(claim: &Claim) -> i32 {
    i32::try_from(claim.count).unwrap_or(i32::MAX)
}

fn names_of(claim: &Claim) -> Option<Vec<&str>> {
    claim.names.as_ref().map(|names| names.iter().map(Name::as_str).collect())
}

fn answer(jobs: Vec<acta_core::Job>) -> ClaimAnswer {
    let outcome = if jobs.is_empty() { ClaimOutcome::Nothing(None) } else { ClaimOutcome::Claimed(jobs) };
    ClaimAnswer { outcome, trace: None }
}

/// A wave, as the functions of the database are told of it.
struct Told<'w> {
    path: String,
    /// What is asked; a settlement that could never be carried out is refused here, and not sent.
    asked: Vec<(usize, &'w Settlement)>,
    refused: Vec<(usize, Error)>,
    rows: Vec<Option<i64>>,
    ids: Vec<&'w str>,
    fences: Vec<Option<i64>>,
    robots: Given<&'w str>,
    outcomes: Vec<i16>,
    marks: Vec<i64>,
    texts: Given<String>,
    instants: Given<i64>,
    words: Option<Vec<i64>>,
    places: Option<Vec<Tid>>,
    lanes: Option<Vec<i64>>,
}

/// A column that hardly any wave has anything in: then the functions know at one look that nothing there is special.
type Given<T> = Option<Vec<Option<T>>>;

impl<'w> Told<'w> {
    fn of(wave: &'w Wave, words: Option<Vec<i64>>) -> Self {
        let count = wave.settlements.len();
        let mut told = Self {
            path: wave.namespace.to_string(),
            asked: Vec::with_capacity(count),
            refused: Vec::new(),
            rows: Vec::with_capacity(count),
            ids: Vec::with_capacity(count),
            fences: Vec::with_capacity(count),
            robots: None,
            outcomes: Vec::with_capacity(count),
            marks: Vec::with_capacity(count),
            texts: None,
            instants: None,
            words,
            places: None,
            lanes: None,
        };
        for (index, settlement) in wave.settlements.iter().enumerate() {
            match settlement.outcome.check() {
                Err(fault) => told.refused.push((index, fault)),
                Ok(()) => told.add(index, settlement),
            }
        }
        told
    }

    /// The parameters of a call that settles, and behind them the rest.
    fn params<'p>(&'p self, rest: &[Param<'p>]) -> Vec<Param<'p>> {
        let wave: &[Param<'p>] = params![
            self.path => TEXT,
            self.rows => INT8_ARRAY,
            self.ids => TEXT_ARRAY,
            self.fences => INT8_ARRAY,
            self.robots => TEXT_ARRAY,
            self.outcomes => INT2_ARRAY,
            self.marks => INT8_ARRAY,
            self.texts => TEXT_ARRAY,
            self.instants => INT8_ARRAY,
            self.words => INT8_ARRAY,
            self.places => TID_ARRAY,
            self.lanes => INT8_ARRAY,
        ];
        [wave, rest].concat()
    }

    fn add(&mut self, index: usize, settlement: &'w Settlement) {
        let Settlement { id, claimant, outcome } = settlement;
        let (kind, text, instant) = match outcome {
            Outcome::Succeeded(output) => (0, output.as_ref().map(|output| output.as_str().to_owned()), None),
            Outcome::Failed(failure) => {
                let kind = if failure.kind == FailureKind::Business { 2 } else { 1 };
                let exception = serde_json::to_string(&failure.exception()).ok();
                (kind, exception, failure.retry_after.map(Span::as_millis))
            }
            Outcome::Wait { until, signal } => (3, signal.as_ref().map(ToString::to_string), millis(*until)),
            Outcome::Snooze(until) => (4, None, Some(until.as_millis())),
            Outcome::Release => (5, None, None),
            Outcome::Cancelled => (6, None, None),
        };
        let before = self.asked.len();
        self.asked.push((index, settlement));
        self.rows.push(id.row().map(u64::cast_signed));
        self.ids.push(id.as_str());
        self.fences.push(claimant.fence.map(u64::cast_signed));
        give(&mut self.robots, before, claimant.robot.as_ref().map(Label::as_str));
        self.outcomes.push(kind);
        self.marks.push(outcome.mark());
        give(&mut self.texts, before, text);
        give(&mut self.instants, before, instant);
    }

    /// The answers in the order of the wave.
    fn answers(self, said: Said) -> Result<Vec<Result<SettleAnswer>>> {
        let mut answers: Vec<(usize, Result<SettleAnswer>)> =
            self.refused.into_iter().map(|(index, fault)| (index, Err(fault))).collect();
        for ((index, settlement), said) in self.asked.into_iter().zip(said.settled) {
            answers.push((index, said.answer(settlement)?));
        }
        answers.sort_by_key(|(index, _)| *index);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// What a function of the database says of a wave.
struct Said {
    settled: Vec<Settled>,
    /// How many random numbers it took.
    drew: usize,
}

impl Said {
    fn of(settled: Vec<Settled>) -> Self {
        let drew = settled.iter().filter(|settled| settled.drew).count();
        Self { settled, drew }
    }

    fn all_succeeded(count: usize) -> Self {
        Self { settled: (0..count).map(|_| Settled::succeeded()).collect(), drew: 0 }
    }
}

/// What it says of one settlement.
struct Settled {
    fault: Option<String>,
    state: Option<i16>,
    run_at: Option<i64>,
    fence: Option<i64>,
    holder: Option<String>,
    drew: bool,
}

impl Settled {
    fn succeeded() -> Self {
        let state = Some(i16::from(State::Succeeded.code()));
        Self { fault: None, state, run_at: None, fence: None, holder: None, drew: false }
    }

    fn answer(self, settlement: &Settlement) -> Result<Result<SettleAnswer>> {
        let Settlement { id, claimant, .. } = settlement;
        if let Some(fault) = &self.fault {
            return Ok(Err(refusal(fault, id, claimant, self.state, self.fence, self.holder)?));
        }
        let state = codec::state_of(self.state.unwrap_or(-1))?;
        Ok(Ok(SettleAnswer { state, run_at: self.run_at.map(Timestamp::from_millis) }))
    }
}

/// The answers of a settle, each a row.
fn settled(rows: &[Row]) -> Result<Said> {
    let read = |row: &Row| {
        Ok(Settled {
            fault: get(row, 0)?,
            state: get(row, 1)?,
            run_at: get(row, 2)?,
            fence: get(row, 3)?,
            holder: get(row, 4)?,
            drew: get(row, 5)?,
        })
    };
    Ok(Said::of(rows.iter().map(read).collect::<Result<_>>()?))
}

/// The answers of an exchange, each a column of one row.
fn side_by_side(row: &Row) -> Result<Said> {
    let faults: Vec<Option<String>> = get(row, 0)?;
    let states: Vec<Option<i16>> = get(row, 1)?;
    let run_ats: Vec<Option<i64>> = get(row, 2)?;
    let fences: Vec<Option<i64>> = get(row, 3)?;
    let holders: Vec<Option<String>> = get(row, 4)?;
    let drew: Vec<bool> = get(row, 5)?;
    let rest = states.into_iter().zip(run_ats).zip(fences).zip(holders).zip(drew);
    let whole =
        |(fault, ((((state, run_at), fence), holder), drew))| Settled { fault, state, run_at, fence, holder, drew };
    Ok(Said::of(faults.into_iter().zip(rest).map(whole).collect()))
}

/// The error that a fault of the functions is.
fn refusal(
    fault: &str,
    id: &JobId,
    claimant: &Claimant,
    state: Option<i16>,
    fence: Option<i64>,
    holder: Option<String>,
) -> Result<Error> {
    let refusal = match fault {
        "missing" => return Ok(Error::not_found("job", id.as_str())),
        "nothing" => Refusal::NamesNothing,
        "never" => Refusal::NeverClaimed,
        "other" => Refusal::OtherOutcome,
        _ => Refusal::LeaseLost,
    };
    let state: State = codec::state_of(state.unwrap_or(-1))?;
    let holder = holder.map(Label::trusted);
    Ok(refusal.error(id, state, fence.unwrap_or_default().cast_unsigned(), holder.as_ref(), claimant))
}
