//! `run`: enqueue a job, claim exactly that one, run it here, settle it.

use std::sync::Arc;
use std::time::Duration;

use acta_core::store::{
    Action, Claim, ClaimOutcome, Claimant, Dedup, Define, Enqueue, Heartbeats, NewJob, News, Operation, Outcome,
    Report, SettleAnswer, Settlement, Wave,
};
use acta_core::{Error, Item, Job, JobId, Json, Label, Namespace, Random, State, Store, Timestamp, id};
use anyhow::Result;
use tokio::time::Instant;

use crate::args::RunArgs;
use crate::exit::{Exit, Fault};
use crate::jobdef::Jobdef;
use crate::printer::Printer;
use crate::robot::{Ending, LogFile, Next, Process, Start, outcome_of};
use crate::settings::Settings;

/// How often a robot tells the ledger that it is there, at the least; so a cancel reaches it soon.
const HEARTBEAT: Duration = Duration::from_secs(2);

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
}

pub(crate) async fn run(settings: &Settings, printer: &mut Printer, args: &RunArgs) -> Result<Exit> {
    let jobdef = Jobdef::read(&args.jobdef)?;
    let robot = match &args.robot {
        Some(robot) => Label::new("robot", robot)?,
        None => Label::new("robot", &default_robot())?,
    };
    let namespace = Namespace::job_queue(jobdef.queue().as_str())?;
    let interrupts = Interrupts::listen()?;
    let store = settings.open()?;
    let mut random = acta_store::random::system_random()?;
    let job_id = id::run_id(jobdef.queue(), settings.now(), &mut random as &mut dyn Random);
    let mut run = Run { settings, printer, store, jobdef, namespace, robot, job_id, interrupts };
    run.work_off().await
}

/// The machine's name and the process's number.
fn default_robot() -> String {
    let machine = rustix::system::uname();
    let name = machine.nodename().to_string_lossy();
    let printable: String = name.chars().filter(|character| !character.is_control()).take(100).collect();
    format!("{printable}-{}", std::process::id())
}

/// How an attempt went on.
enum Attempt {
    Settled(Outcome, SettleAnswer),
    Interrupted,
    Cancelled,
    Lost(Error),
}

impl Run<'_> {
    async fn work_off(&mut self) -> Result<Exit> {
        let id = self.enqueue().await?;
        loop {
            let job = self.claim(&id).await?;
            match self.attempt(&job).await? {
                Attempt::Settled(outcome, answer) if answer.state.is_final() => {
                    return self.tell(&id, matches!(outcome, Outcome::Succeeded(_))).await;
                }
                Attempt::Settled(outcome, answer) => {
                    self.tell_retry(&outcome, answer);
                    if self.wait_until(answer.run_at).await {
                        return self.give_up(&id).await;
                    }
                }
                Attempt::Interrupted => {
                    self.tell(&id, false).await?;
                    return Ok(Exit::Interrupted);
                }
                Attempt::Cancelled => return self.tell(&id, false).await,
                Attempt::Lost(fault) => return Err(fault.into()),
            }
        }
    }

    async fn enqueue(&self) -> Result<JobId> {
        let definition = self.jobdef.definition();
        let input = &self.jobdef.input;
        let payload = Json::new(format!(r#"{{"jobId":"{}","input":{input}}}"#, self.job_id))?;
        let job = NewJob {
            name: Some(definition.name.clone()),
            dedup: Some(Dedup { key: Label::new("job id", &self.job_id)?, while_live: false }),
            ..NewJob::new(payload)
        };
        self.store.define(Define::Job(definition)).await?;
        let added = self.store.enqueue(Enqueue { namespace: self.namespace.clone(), jobs: vec![job] }).await?;
        let first = added.into_iter().next();
        first.map(|added| added.id).ok_or_else(|| Fault::new(Exit::Unavailable, "the ledger gave no id").into())
    }

    /// Claims the job itself, and nothing else.
    async fn claim(&self, id: &JobId) -> Result<Job> {
        let claim = Claim { expect: Some(id.clone()), ..Claim::one(self.namespace.clone(), self.robot.clone()) };
        match self.store.claim(claim).await?.outcome {
            ClaimOutcome::Claimed(jobs) => {
                let first = jobs.into_iter().next();
                first.ok_or_else(|| Fault::new(Exit::Unavailable, "the ledger claimed nothing").into())
            }
            ClaimOutcome::Mismatch { found: Some(other), .. } => {
                let message = format!(
                    "claim failure: expected {id}, but {other} comes before it in {}; both are unharmed, and {id} stays queued",
                    self.namespace
                );
                let hint = format!(
                    "wait until a robot has worked off {other}, or clear the way with `jobs cancel {other}`; `jobs explain {id}` tells more"
                );
                Err(Fault::new(Exit::ClaimFailure, message).hint(hint).into())
            }
            ClaimOutcome::Mismatch { found: None, .. } | ClaimOutcome::Nothing(_) => {
                let told = self.store.explain(id.clone()).await?;
                let message = format!("claim failure: {id} can't be claimed now, it is {}", told.state);
                Err(Fault::new(Exit::ClaimFailure, message).hint(told.advice).into())
            }
        }
    }

    /// Runs the command under the claim and settles it.
    async fn attempt(&mut self, job: &Job) -> Result<Attempt> {
        let id = &job.identity.id;
        let claimant = Claimant { fence: Some(job.standing.fence), robot: Some(self.robot.clone()) };
        self.printer.complain(&format!("{id}: attempt {} of {}", job.standing.attempts, job.standing.max_attempts));
        let started = Report {
            namespace: self.namespace.clone(),
            id: id.clone(),
            claimant: claimant.clone(),
            news: News::Started,
        };
        if let Err(fault) = self.store.report(started).await {
            return lost_or(fault);
        }
        let result_file = tempfile::NamedTempFile::new()?;
        let mut log = LogFile::open(&self.settings.logs(), id)?;
        let (ending, last_words) = match Process::start(self.start_of(job, result_file.path())) {
            Ok(process) => match self.watch(process, job, &claimant, &mut log).await? {
                Watched::Ended(ending, last_words) => (ending, last_words),
                Watched::Interrupted => return self.withdraw(job, claimant, true).await,
                Watched::CancelRequested => return self.withdraw(job, claimant, false).await,
                Watched::Lost(fault) => return Ok(Attempt::Lost(fault)),
            },
            Err(fault) => (Ending::NotStarted(format!("{fault:#}")), None),
        };
        let outcome = outcome_of(&ending, result_file.path(), last_words.as_deref());
        match self.settle(job, claimant, outcome.clone()).await {
            Ok(answer) if answer.state == State::Cancelled => Ok(Attempt::Cancelled),
            Ok(answer) => Ok(Attempt::Settled(outcome, answer)),
            Err(fault) => lost_or(fault),
        }
    }

    fn start_of(&self, job: &Job, result_file: &std::path::Path) -> Start {
        let mut env: std::collections::BTreeMap<String, String> =
            self.jobdef.env.iter().map(|(name, value)| (name.0.clone(), value.0.clone())).collect();
        let ours = [
            ("ACTA_JOB_ID", self.job_id.clone()),
            ("ACTA_ITEM_ID", job.identity.id.to_string()),
            ("ACTA_QUEUE", self.namespace.name().to_string()),
            ("ACTA_ROBOT", self.robot.to_string()),
            ("ACTA_ATTEMPT", job.standing.attempts.to_string()),
            ("ACTA_FENCE", job.standing.fence.to_string()),
            ("ACTA_RESULT_FILE", result_file.display().to_string()),
        ];
        env.extend(ours.map(|(name, value)| (name.to_owned(), value)));
        Start {
            program: self.jobdef.command.program.clone(),
            arguments: self.jobdef.command.arguments.clone(),
            cwd: self.jobdef.cwd(),
            env,
            stdin: self.jobdef.input.to_string(),
        }
    }

    /// Keeps the claim and the log while the process runs.
    async fn watch(
        &mut self,
        mut process: Process,
        job: &Job,
        claimant: &Claimant,
        log: &mut LogFile,
    ) -> Result<Watched> {
        let lease = self.jobdef.lease();
        let mut beat = tokio::time::interval(HEARTBEAT.min(lease.to_std() / 3).max(Duration::from_millis(10)));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let timeout = self.jobdef.timeout.map(|limit| (Instant::now() + limit.0.to_std(), limit.0));
        let mut last_words = None;
        loop {
            tokio::select! {
                next = process.next() => match next? {
                    Next::Wrote(line) => self.keep(&line, log, &mut last_words),
                    Next::Ended(status) => {
                        for line in process.last_lines().await {
                            self.keep(&line, log, &mut last_words);
                        }
                        return Ok(Watched::Ended(Ending::Exited(status), last_words));
                    }
                },
                _ = beat.tick() => {
                    match self.heartbeat(job, claimant).await {
                        Ok(false) => {}
                        Ok(true) => {
                            self.printer.complain("its cancel was requested; stopping it");
                            self.stop(&mut process).await;
                            return Ok(Watched::CancelRequested);
                        }
                        Err(fault) if fault.is_unavailable() => {
                            self.printer.complain(&format!("warning: no heartbeat: {fault}"));
                        }
                        Err(fault) => {
                            process.kill().await;
                            return Ok(Watched::Lost(fault));
                        }
                    }
                }
                () = until(timeout.map(|(end, _)| end)) => {
                    process.stop().await;
                    for line in process.last_lines().await {
                        self.keep(&line, log, &mut last_words);
                    }
                    let limit = timeout.map(|(_, limit)| limit.to_string()).unwrap_or_default();
                    return Ok(Watched::Ended(Ending::TimedOut(limit), last_words));
                }
                () = self.interrupts.next() => {
                    self.printer.complain("interrupted; stopping the job (once more to kill it)");
                    self.stop(&mut process).await;
                    return Ok(Watched::Interrupted);
                }
            }
        }
    }

    fn keep(&self, line: &crate::robot::Line, log: &mut LogFile, last_words: &mut Option<String>) {
        log.line(&line.text);
        self.printer.live(&line.text);
        if line.is_error && !line.text.trim().is_empty() {
            *last_words = Some(line.text.clone());
        }
    }

    /// Ends the process group, at once if somebody interrupts again.
    async fn stop(&mut self, process: &mut Process) {
        let is_impatient = tokio::select! {
            () = process.stop() => false,
            () = self.interrupts.next() => true,
        };
        if is_impatient {
            process.kill().await;
        }
    }

    /// Extends the lease; whether a cancel was requested.
    async fn heartbeat(&self, job: &Job, claimant: &Claimant) -> Result<bool, Error> {
        let beats = Heartbeats {
            namespace: self.namespace.clone(),
            beats: vec![(job.identity.id.clone(), claimant.clone())],
            lease: None,
        };
        let answer = self.store.heartbeat(beats).await?.into_iter().next();
        answer.transpose().map(|beat| beat.is_some_and(|beat| beat.cancel_requested))
    }

    async fn withdraw(&self, job: &Job, claimant: Claimant, is_interrupt: bool) -> Result<Attempt> {
        match self.settle(job, claimant, Outcome::Cancelled).await {
            Ok(_) if is_interrupt => Ok(Attempt::Interrupted),
            Ok(_) => Ok(Attempt::Cancelled),
            Err(fault) => lost_or(fault),
        }
    }

    /// Settles; while the ledger is out of reach, again, until the lease would lapse.
    async fn settle(&self, job: &Job, claimant: Claimant, outcome: Outcome) -> Result<SettleAnswer, Error> {
        let end = Instant::now() + self.jobdef.lease().to_std();
        let mut pause = Duration::from_millis(100);
        loop {
            let settlement =
                Settlement { id: job.identity.id.clone(), claimant: claimant.clone(), outcome: outcome.clone() };
            let wave = Wave { namespace: self.namespace.clone(), settlements: vec![settlement] };
            let answer = match self.store.settle(wave).await {
                Ok(answers) => answers.into_iter().next().unwrap_or_else(|| {
                    Err(Error::Unavailable { place: "the ledger".into(), why: "gave no answer".into() })
                }),
                Err(fault) => Err(fault),
            };
            match answer {
                Err(fault) if fault.is_unavailable() && Instant::now() + pause < end => {
                    self.printer.complain(&format!("warning: not settled yet: {fault}"));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                answer => return answer,
            }
        }
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
        self.tell(id, false).await?;
        Ok(Exit::Interrupted)
    }

    async fn tell(&self, id: &JobId, is_done: bool) -> Result<Exit> {
        let found = self.store.job(id.clone()).await?;
        let item = Item::new(&found.namespace, &found.job);
        if self.printer.is_json() {
            self.printer.json(&item)?;
        } else {
            let took = item.claimed_at.zip(item.finished_at).map(|(start, end)| end.since_ms(start));
            let took = took.map(|millis| format!(" in {}", super::show::seconds(millis))).unwrap_or_default();
            self.printer.line(&format!("{} {id}{took}", item.status))?;
            if let Some(output) = &item.output {
                self.printer.line(&format!("output {output}"))?;
            }
            if let Some(exception) = &item.exception {
                let kind = format!("{:?}", exception.kind).to_lowercase();
                self.printer.line(&format!("{kind} exception: {}", exception.message))?;
            }
        }
        Ok(if is_done { Exit::Done } else { Exit::Failed })
    }
}

/// Why watching a process ended.
enum Watched {
    Ended(Ending, Option<String>),
    Interrupted,
    CancelRequested,
    Lost(Error),
}

fn lost_or(fault: Error) -> Result<Attempt> {
    if fault.is_lease_lost() { Ok(Attempt::Lost(fault)) } else { Err(fault.into()) }
}

/// Waits for an instant; for ever where there is none.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Ctrl-C, a polite end from outside, and a closed terminal: all mean "stop".
struct Interrupts {
    int: tokio::signal::unix::Signal,
    term: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Interrupts {
    fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
