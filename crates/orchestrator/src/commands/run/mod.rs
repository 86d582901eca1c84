//! `run`: enqueue a job, claim exactly that one, run it here, settle it.

mod heartbeat;
mod orders;

use std::sync::Arc;
use std::time::Duration;

use acta_core::store::{
    Action, Claim, ClaimOutcome, Claimant, Dedup, Define, Enqueue, NewJob, News, Operation, Outcome, Report,
    SettleAnswer, Settlement, Wave,
};
use acta_core::{Error, Item, Job, JobId, Label, Namespace, State, Store, Timestamp, id};
use anyhow::{Context, Result};
use tokio::time::Instant;

use self::heartbeat::Heart;
use self::orders::RunOrders;
use crate::args::RunArgs;
use crate::exit::{Exit, Fault, is_broken_pipe};
use crate::jobdef::Jobdef;
use crate::printer::Printer;
use crate::robot::{Bench, Given, Interrupts, LogFile, Stop, Work, Worked, robot_name};
use crate::settings::Settings;

/// One run of a definition.
struct Run<'a> {
    settings: &'a Settings,
    printer: &'a Printer,
    store: Arc<dyn Store>,
    jobdef: Jobdef,
    namespace: Namespace,
    robot: Label,
    job_id: String,
    interrupts: Interrupts,
    is_interrupted: bool,
}

pub(crate) async fn run(settings: &Settings, printer: &mut Printer, args: &RunArgs) -> Result<Exit> {
    let jobdef = Jobdef::read(&args.jobdef, "nothing was enqueued")?;
    let robot = robot_name(args.robot.as_deref())?;
    let namespace = Namespace::job_queue(jobdef.queue().as_str())?;
    let interrupts = Interrupts::listen()?;
    let store = settings.open_or_make().await?;
    let mut random = acta_store::random::system_random()?;
    let job_id = id::run_id(jobdef.queue(), settings.now(), &mut random);
    let mut run = Run { settings, printer, store, jobdef, namespace, robot, job_id, interrupts, is_interrupted: false };
    run.work_off().await
}

/// What a claim came to.
enum Claimed {
    /// The job is ours.
    Ours(Box<Job>),
    /// It ended meanwhile, by somebody else's hand.
    Ended,
}

/// How an attempt went on.
enum Attempt {
    Settled(Outcome, SettleAnswer),
    Interrupted,
    Cancelled,
    Lost(Error),
    /// It has an outcome that the ledger could not be told.
    Unsettled(Error),
}

impl Run<'_> {
    async fn work_off(&mut self) -> Result<Exit> {
        LogFile::prepare(&self.settings.logs())?;
        let id = self.enqueue().await?;
        loop {
            let stays = || format!("{id} stays queued");
            // Made before the claim: what can't be made costs no attempt.
            let bench = Bench::set_up(&self.settings.logs(), &id).with_context(stays)?;
            let job = match self.claim(&id).await? {
                Claimed::Ours(job) => job,
                Claimed::Ended => return self.tell(&id, Exit::Failed).await,
            };
            match self.attempt_or_release(&job, bench).await? {
                Attempt::Settled(outcome, answer) if answer.state.is_final() => {
                    let is_done = matches!(outcome, Outcome::Succeeded(_));
                    return self.tell(&id, if is_done { Exit::Done } else { Exit::Failed }).await;
                }
                Attempt::Settled(outcome, answer) => {
                    self.tell_retry(&outcome, answer);
                    if self.is_interrupted || self.wait_until(answer.run_at).await {
                        return self.give_up(&id).await;
                    }
                }
                Attempt::Interrupted => return self.tell(&id, Exit::Interrupted).await,
                Attempt::Cancelled => return self.tell(&id, Exit::Failed).await,
                Attempt::Lost(fault) => return Err(fault.into()),
                Attempt::Unsettled(fault) => {
                    let context =
                        format!("{id} has ended, but stays claimed until its lease lapses and then runs again");
                    return Err(anyhow::Error::from(fault).context(context));
                }
            }
        }
    }

    async fn enqueue(&self) -> Result<JobId> {
        let definition = self.jobdef.definition();
        let given = Given { job_id: self.job_id.clone(), input: self.jobdef.input.clone() };
        let job = NewJob {
            name: Some(definition.name.clone()),
            dedup: Some(Dedup { key: Label::new("job id", &self.job_id)?, while_live: false }),
            ..NewJob::new(given.payload()?)
        };
        self.store.define(Define::Job(definition)).await?;
        let added = self.store.enqueue(Enqueue { namespace: self.namespace.clone(), jobs: vec![job] }).await?;
        let first = added.into_iter().next();
        first.map(|added| added.id).ok_or_else(|| Fault::new(Exit::Unavailable, "the ledger gave no id").into())
    }

    /// Claims the job itself, and nothing else.
    async fn claim(&self, id: &JobId) -> Result<Claimed> {
        let claim = Claim { expect: Some(id.clone()), ..Claim::one(self.namespace.clone(), self.robot.clone()) };
        let found = match self.store.claim(claim).await?.outcome {
            ClaimOutcome::Claimed(mut jobs) if !jobs.is_empty() => {
                return Ok(Claimed::Ours(Box::new(jobs.remove(0))));
            }
            ClaimOutcome::Mismatch { found, .. } => found,
            ClaimOutcome::Claimed(_) | ClaimOutcome::Nothing(_) => None,
        };
        // What has become of our own tells more than what stands before it.
        let told = self.store.explain(id.clone()).await?;
        match found {
            _ if told.state.is_final() => Ok(Claimed::Ended),
            Some(other) if !told.state.is_held() => {
                let message = format!(
                    "claim failure: expected {id}, but {other} comes before it in {}; both are unharmed, and {id} stays queued",
                    self.namespace
                );
                let hint = format!(
                    "wait until a robot has worked off {other}, or clear the way with `jobs cancel {other}`; `jobs explain {id}` tells more"
                );
                Err(Fault::new(Exit::ClaimFailure, message).hint(hint).into())
            }
            Some(_) | None => {
                let message = format!("claim failure: {id} can't be claimed now, it is {}", told.state);
                Err(Fault::new(Exit::ClaimFailure, message).hint(told.advice).into())
            }
        }
    }

    /// Whatever goes wrong on this machine, the job does not stay with a robot that has stopped.
    async fn attempt_or_release(&mut self, job: &Job, bench: Bench) -> Result<Attempt> {
        match self.attempt(job, bench).await {
            Err(fault) => {
                if let Err(other) = self.settle_once(job, Outcome::Release).await {
                    let id = &job.identity.id;
                    self.printer.complain(&format!("warning: {id} stays claimed until its lease lapses: {other}"));
                }
                Err(fault)
            }
            attempt => attempt,
        }
    }

    /// Runs the command under the claim and settles it.
    async fn attempt(&mut self, job: &Job, bench: Bench) -> Result<Attempt> {
        let id = &job.identity.id;
        let standing = &job.standing;
        self.printer.complain(&format!("{id}: attempt {} of {}", standing.attempts, standing.max_attempts));
        let claimant = self.claimant(job);
        let started = Report {
            namespace: self.namespace.clone(),
            id: id.clone(),
            claimant: claimant.clone(),
            news: News::Started,
        };
        if let Err(fault) = self.store.report(started).await {
            return lost_or(fault);
        }
        let lease = self.jobdef.lease();
        let mut heart = Heart::start(Arc::clone(&self.store), self.namespace.clone(), id.clone(), claimant, lease);
        let mut orders = RunOrders::new(self.printer, &mut heart, &mut self.interrupts);
        let work = Work { jobdef: &self.jobdef, namespace: &self.namespace, robot: &self.robot, job };
        let worked = work.run(bench, &mut orders, Some(self.printer)).await?;
        self.is_interrupted = orders.is_interrupted;
        let is_stopped = matches!(worked, Worked::Stopped(Stop::Interrupted));
        let outcome = match worked {
            Worked::Ended(outcome) => outcome,
            Worked::Stopped(Stop::Lost) => return Ok(Attempt::Lost(orders.lost(id))),
            Worked::Stopped(_) => Outcome::Cancelled,
        };
        // The heart goes on beating until this has an answer.
        match self.settle(job, outcome.clone()).await {
            Ok(_) if is_stopped => Ok(Attempt::Interrupted),
            Ok(answer) if answer.state == State::Cancelled => Ok(Attempt::Cancelled),
            Ok(answer) => Ok(Attempt::Settled(outcome, answer)),
            Err(fault) if fault.is_lease_lost() => Ok(Attempt::Lost(fault)),
            Err(fault) => Ok(Attempt::Unsettled(fault)),
        }
    }

    fn claimant(&self, job: &Job) -> Claimant {
        Claimant { fence: Some(job.standing.fence), robot: Some(self.robot.clone()) }
    }

    /// Settles; while the ledger is out of reach, again, until the lease would lapse or somebody interrupts.
    async fn settle(&mut self, job: &Job, outcome: Outcome) -> Result<SettleAnswer, Error> {
        let end = Instant::now() + self.jobdef.lease().to_std();
        let mut pause = Duration::from_millis(100);
        loop {
            match self.settle_once(job, outcome.clone()).await {
                Err(fault) if fault.is_unavailable() && Instant::now() + pause < end => {
                    self.printer.complain(&format!("warning: not settled yet: {fault}"));
                    tokio::select! {
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(5)),
                        () = self.interrupts.next() => return Err(fault),
                    }
                }
                answer => return answer,
            }
        }
    }

    async fn settle_once(&self, job: &Job, outcome: Outcome) -> Result<SettleAnswer, Error> {
        let settlement = Settlement { id: job.identity.id.clone(), claimant: self.claimant(job), outcome };
        let wave = Wave { namespace: self.namespace.clone(), settlements: vec![settlement] };
        let none = || Error::Unavailable { place: "the ledger".into(), why: "gave no answer".into() };
        self.store.settle(wave).await?.pop().unwrap_or_else(|| Err(none()))
    }

    fn tell_retry(&self, outcome: &Outcome, answer: SettleAnswer) {
        let why = match outcome {
            Outcome::Failed(failure) => failure.message.clone(),
            _ => "it was put back".into(),
        };
        let when = answer.run_at.map_or_else(|| "now".into(), |at| at.to_string());
        self.printer.complain(&format!("failed: {why}; again at {when}"));
    }

    /// Waits out the back-off; true if interrupted.
    async fn wait_until(&mut self, run_at: Option<Timestamp>) -> bool {
        let left = run_at.map_or(0, |at| at.since_ms(self.settings.now())).max(0);
        // A millisecond more, so that the instant has come by the ledger's clock.
        let end = Instant::now() + Duration::from_millis(left.unsigned_abs() + 1);
        tokio::select! {
            () = tokio::time::sleep_until(end) => false,
            () = self.interrupts.next() => true,
        }
    }

    /// Cancels the job that waits for its next attempt.
    async fn give_up(&self, id: &JobId) -> Result<Exit> {
        let operation = Operation {
            namespace: self.namespace.clone(),
            ids: vec![id.clone()],
            action: Action::Cancel { force: false },
            actor: Some(self.robot.clone()),
            reason: Some("interrupted while it waited for its next attempt".into()),
        };
        for answer in self.store.operate(operation).await? {
            answer?;
        }
        self.tell(id, Exit::Interrupted).await
    }

    /// Prints how the job ended; the exit code stays what it is where nobody reads that.
    async fn tell(&self, id: &JobId, exit: Exit) -> Result<Exit> {
        let found = self.store.job(id.clone()).await?;
        match self.print(&Item::new(&found.namespace, &found.job)) {
            Err(fault) if !is_broken_pipe(&fault) => Err(fault),
            _ => Ok(exit),
        }
    }

    fn print(&self, item: &Item) -> Result<()> {
        if self.printer.is_json() {
            return self.printer.json(item);
        }
        let took = item.claimed_at.zip(item.finished_at).map(|(start, end)| end.since_ms(start));
        let took = took.map(|millis| format!(" in {}", super::show::seconds(millis))).unwrap_or_default();
        self.printer.line(&format!("{} {}{took}", item.status, item.id))?;
        if let Some(output) = &item.output {
            self.printer.line(&format!("output {output}"))?;
        }
        if let Some(exception) = &item.exception {
            let kind = format!("{:?}", exception.kind).to_lowercase();
            self.printer.line(&format!("{kind} exception: {}", exception.message))?;
        }
        Ok(())
    }
}

fn lost_or(fault: Error) -> Result<Attempt> {
    if fault.is_lease_lost() { Ok(Attempt::Lost(fault)) } else { Err(fault.into()) }
}
