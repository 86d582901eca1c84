//! What operators and holders do now and then: the rules carry it out, on the rows of one transaction.

use acta_core::history::Entry;
use acta_core::store::{
    Action, Claim, ClaimAnswer, ClaimOutcome, Define, Hold, Operated, Operation, Report, SettleAnswer, Wave,
};
use acta_core::{Clock, Error, JobId, Name, Namespace, Result, Rules, Seeded, Span, Timestamp};
use tokio::runtime::Handle;

use super::PostgresStore;
use super::codec::{self, get};
use super::rows::PgRows;
use super::session::{Session, params, statement};

/// The instant of an operation: that of the clock that is handed in, or the database's.
pub(super) fn now(session: &Session, clock: Option<&dyn Clock>) -> Result<Timestamp> {
    match clock {
        Some(clock) => Ok(clock.now()),
        None => session.now(),
    }
}

/// Runs a verb of the rules on a namespace; `None` if there is none.
pub(super) fn with_rules<T>(
    session: &Session,
    clock: Option<&dyn Clock>,
    namespace: &Namespace,
    verb: impl FnOnce(&mut Rules<'_, PgRows<'_>>) -> Result<T>,
) -> Result<Option<T>> {
    let Some((ns, queue)) = session.namespace(namespace)? else { return Ok(None) };
    let now = now(session, clock)?;
    let mut rows = PgRows::new(session, ns, queue, now);
    // None of the verbs that come here draws a number.
    let mut random = Seeded::new(0);
    let answer = verb(&mut Rules::new(&mut rows, now, &mut random))?;
    rows.finish()?;
    Ok(Some(answer))
}

fn existing<T>(namespace: &Namespace, found: Option<T>) -> Result<T> {
    found.ok_or_else(|| Error::not_found("queue", &namespace.to_string()))
}

impl PostgresStore {
    /// Runs `work` in a transaction of its own, begun by `begin`, on a thread that may block.
    async fn transaction<T: Send + 'static>(
        &self,
        begin: &'static str,
        work: impl FnOnce(&Session) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let client = self.db.get().await?;
        let session = Session::new(Handle::current(), client, self.db.place());
        let run = move || {
            session.command(begin)?;
            let answer = work(&session);
            match &answer {
                Ok(_) => session.command("COMMIT")?,
                // Where not even this is possible the connection is gone, and the transaction with it.
                Err(_) => session.command("ROLLBACK").unwrap_or_default(),
            }
            answer
        };
        let gone = |fault: tokio::task::JoinError| super::fault::unavailable(self.db.place(), fault.to_string());
        tokio::task::spawn_blocking(run).await.map_err(gone)?
    }

    /// A change. A process that stands still in the middle of it does not keep what it holds from the others for long.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Session) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.transaction("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '15s'", work).await
    }

    /// A look, at one moment of the ledger.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Session) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work).await
    }

    /// A claim that wants a trace, or one certain job: in one transaction with what it looks at.
    pub(super) async fn claim_closely(&self, claim: Claim) -> Result<ClaimAnswer> {
        let clock = self.clock.clone();
        self.write(move |session| claim_in(session, clock.as_deref(), &claim, true)).await
    }

    /// The same behind a wave.
    pub(super) async fn exchange_closely(
        &self,
        wave: &Wave,
        claim: &Claim,
    ) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        let mut drawn = self.words().await;
        let words = drawn.peek(wave.settlements.len(), u64::cast_signed);
        let (clock, wave, claim) = (self.clock.clone(), wave.clone(), claim.clone());
        let both = self.write(move |session| {
            let now = clock.as_ref().map(|clock| clock.now().as_millis());
            let settled = Self::settle_in(session, &wave, words, now)?;
            Ok((settled, claim_in(session, clock.as_deref(), &claim, false)?))
        });
        let ((settled, drew), answer) = both.await?;
        drawn.take(drew);
        Ok((settled, answer))
    }

    /// Adds to an answer of nothing why there is nothing, where that was asked for.
    ///
    /// Most claims find something, so the reason is looked for behind them. If there is a candidate by then, it is claimed:
    /// somebody may have had hold of it when the claim came by.
    pub(super) async fn with_reason(&self, mut answer: ClaimAnswer, claim: Claim) -> Result<ClaimAnswer> {
        const TRIES: usize = 3;
        if !claim.why {
            return Ok(answer);
        }
        for _ in 0..TRIES {
            if answer.outcome != ClaimOutcome::Nothing(None) {
                return Ok(answer);
            }
            let asked = claim.clone();
            let found = self.look(&claim.namespace, move |rules| {
                Ok((rules.is_candidate_there(&asked)?, rules.why_nothing(&asked)?))
            });
            match found.await? {
                None => return Ok(ClaimAnswer::no_such_queue(&claim)),
                Some((true, _)) => answer = self.claim_jobs(&claim).await?,
                Some((false, why)) => answer.outcome = ClaimOutcome::Nothing(Some(why)),
            }
        }
        Ok(answer)
    }

    pub(super) async fn report_on(&self, report: Report) -> Result<()> {
        let clock = self.clock.clone();
        self.write(move |session| {
            let row = report.id.row().map(u64::cast_signed);
            session.all(statement!("hold_row"), params![row => INT8, report.id.as_str() => TEXT])?;
            let done = with_rules(session, clock.as_deref(), &report.namespace, |rules| rules.report(&report))?;
            existing(&report.namespace, done)
        })
        .await
    }

    pub(super) async fn operate_on(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        let clock = self.clock.clone();
        let given = self.given_now();
        self.write(move |session| {
            let namespace = &operation.namespace;
            existing(namespace, session.namespace(namespace)?)?;
            let path = namespace.to_string();
            let rows: Vec<Option<i64>> = operation.ids.iter().map(|id| id.row().map(u64::cast_signed)).collect();
            let ids: Vec<&str> = operation.ids.iter().map(JobId::as_str).collect();
            let makes = operation.action == Action::Restart;
            session.all(
                statement!("hold_jobs"),
                params![path => TEXT, rows => INT8_ARRAY, ids => TEXT_ARRAY, makes => BOOL, given => INT8],
            )?;
            let done = with_rules(session, clock.as_deref(), namespace, |rules| rules.operate(&operation))?;
            if makes {
                session.all(statement!("let_go"), params![path => TEXT, rows => INT8_ARRAY, ids => TEXT_ARRAY])?;
            }
            existing(namespace, done)
        })
        .await
    }

    pub(super) async fn hold_or_resume(&self, hold: Hold) -> Result<()> {
        let clock = self.clock.clone();
        self.write(move |session| {
            session.all(statement!("begin"), &[])?;
            let (ns, _) = existing(&hold.namespace, session.namespace(&hold.namespace)?)?;
            if let Some(lane) = &hold.lane {
                let params = params![ns => INT4, lane.as_str() => TEXT];
                session.all(statement!("hold_lane"), params)?;
                session.all(statement!("hold_head"), params)?;
            }
            let done = with_rules(session, clock.as_deref(), &hold.namespace, |rules| rules.hold(&hold))?;
            existing(&hold.namespace, done)
        })
        .await
    }

    pub(super) async fn bring_in(&self, namespace: &Namespace) -> Result<usize> {
        let params = params![namespace.to_string() => TEXT, true => BOOL, self.given_now() => INT8];
        let rows = self.db.all(None, statement!("bring_in"), params).await?;
        let changed: Vec<i64> = rows.first().map_or(Ok(Vec::new()), |row| get(row, 0))?;
        // Whoever looks after a queue looks after the ledger, too.
        self.tend().await?;
        Ok(changed.len())
    }

    /// Folds the counts and moves the floors of the claim scan; see `sql/functions/tend.sql`.
    pub(super) async fn tend(&self) -> Result<()> {
        self.db.all(None, statement!("tend"), params![self.given_now() => INT8]).await.map(|_| ())
    }

    pub(super) async fn prune_some(&self, namespace: &Namespace, limit: usize) -> Result<(usize, usize)> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let params = params![namespace.to_string() => TEXT, most => INT8, self.given_now() => INT8];
        let rows = self.db.all(None, statement!("prune"), params).await?;
        let Some(row) = rows.first() else { return Err(self.db.unreadable("a prune", "has no answer")) };
        let count = |column| Ok::<_, Error>(usize::try_from(get::<i32>(row, column)?).unwrap_or_default());
        Ok((count(0)?, count(1)?))
    }

    pub(super) async fn define_one(&self, define: Define) -> Result<()> {
        self.write(move |session| {
            session.all(statement!("begin"), &[])?;
            match define {
                Define::Job(definition) => session.define(&definition),
                Define::Queue(namespace, settings) => session.configure(&namespace, &settings).map(|_| ()),
            }
        })
        .await
    }

    pub(super) async fn history_of(&self, id: JobId) -> Result<Vec<Entry>> {
        self.read(move |session| {
            let (_, row) = super::look::locate(session, &id)?;
            session.all(statement!("history"), params![row => INT8])?.iter().map(codec::entry).collect()
        })
        .await
    }
}

/// A claim that asks for reasons, a trace, or one certain job. `is_first` says that the transaction holds no row yet, so that it may
/// wait for the lanes of what has arrived.
fn claim_in(session: &Session, clock: Option<&dyn Clock>, claim: &Claim, is_first: bool) -> Result<ClaimAnswer> {
    let path = claim.namespace.to_string();
    if session.namespace(&claim.namespace)?.is_none() {
        return Ok(ClaimAnswer::no_such_queue(claim));
    }
    let names: Option<Vec<&str>> = claim.names.as_ref().map(|names| names.iter().map(Name::as_str).collect());
    session.all(statement!("numbers"), params![names => TEXT_ARRAY])?;
    let given = clock.map(|clock| clock.now().as_millis());
    let row = session.one(statement!("bring_in"), params![path => TEXT, is_first => BOOL, given => INT8])?;
    let changed: Vec<i64> = get(&row, 0)?;
    let changed: Vec<u64> = changed.into_iter().map(i64::cast_unsigned).collect();
    let brought_in = with_rules(session, clock, &claim.namespace, |rules| rules.states(&changed))?.unwrap_or_default();
    let outcome = take(session, claim, names.as_deref(), given)?;
    let answer = with_rules(session, clock, &claim.namespace, |rules| {
        let trace = if claim.trace { Some(rules.trace(brought_in, claim, &outcome)?) } else { None };
        let outcome = match outcome {
            ClaimOutcome::Nothing(_) if claim.why => ClaimOutcome::Nothing(Some(rules.why_nothing(claim)?)),
            outcome => outcome,
        };
        Ok(ClaimAnswer { outcome, trace })
    })?;
    existing(&claim.namespace, answer)
}

fn take(session: &Session, claim: &Claim, names: Option<&[&str]>, given: Option<i64>) -> Result<ClaimOutcome> {
    let path = claim.namespace.to_string();
    if let Some(expected) = &claim.expect {
        let row = session.one(statement!("first"), params![path => TEXT, names => TEXT_ARRAY, given => INT8])?;
        let found = get::<Option<&str>>(&row, 0)?.map(JobId::trusted);
        if found.as_ref() != Some(expected) {
            return Ok(ClaimOutcome::Mismatch { expected: expected.clone(), found });
        }
    }
    let most = i32::try_from(claim.count).unwrap_or(i32::MAX);
    let rows = session.all(
        statement!("claim"),
        params![
            path => TEXT,
            claim.robot.as_str() => TEXT,
            most => INT4,
            claim.lease.map(Span::as_millis) => INT8,
            names => TEXT_ARRAY,
            false => BOOL,
            given => INT8,
        ],
    )?;
    let jobs = codec::claimed(&rows, &claim.robot)?;
    if let (Some(expected), Some(first)) = (&claim.expect, jobs.first())
        && first.identity.id != *expected
    {
        // Another one became the first in between; nothing is kept of this claim.
        return Err(super::fault::unavailable(session.place(), "the order has just changed".into()));
    }
    Ok(if jobs.is_empty() { ClaimOutcome::Nothing(None) } else { ClaimOutcome::Claimed(jobs) })
}
