//! One attempt: the command of a definition, run for a claimed job.

use std::collections::BTreeMap;
use std::path::Path;

use acta_core::store::Outcome;
use acta_core::{Job, JobId, Label, Namespace};
use anyhow::Result;

use super::{Ending, Given, LogFile, Orders, Process, Start, Stop, Watch, Watched, outcome_of};
use crate::jobdef::Jobdef;
use crate::printer::Printer;

/// What an attempt leaves behind besides the job's outcome, made before its process starts.
pub(crate) struct Bench {
    log: LogFile,
    result_file: tempfile::NamedTempFile,
}

impl Bench {
    /// A log in this folder, behind those of earlier attempts, and an empty result file.
    pub(crate) fn set_up(logs: &Path, id: &JobId) -> Result<Self> {
        Ok(Self { log: LogFile::open(logs, id)?, result_file: tempfile::NamedTempFile::new()? })
    }
}

/// What is to be done, and under which claim.
pub(crate) struct Work<'a> {
    pub(crate) jobdef: &'a Jobdef,
    pub(crate) namespace: &'a Namespace,
    pub(crate) robot: &'a Label,
    pub(crate) job: &'a Job,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Worked {
    /// The process ended by itself, took too long, or could not be started.
    Ended(Outcome),
    /// It was stopped for another reason than itself; its whole group is gone.
    Stopped(Stop),
}

impl Work<'_> {
    /// Runs the command until it has ended or was stopped.
    pub(crate) async fn run(
        &self,
        mut bench: Bench,
        orders: &mut impl Orders,
        show: Option<&Printer>,
    ) -> Result<Worked> {
        let watched = match Process::start(self.start(bench.result_file.path())) {
            Ok(process) => {
                let timeout = self.jobdef.timeout.map(|limit| limit.0);
                Watch { show, log: &mut bench.log, orders, timeout }.until_the_end(process).await?
            }
            Err(fault) => Watched { ending: Ending::NotStarted(format!("{fault:#}")), stop: None, last_words: None },
        };
        Ok(match watched.stop {
            Some(Stop::TimedOut(_)) | None => {
                let last_words = watched.last_words.as_deref();
                Worked::Ended(outcome_of(&watched.ending, bench.result_file.path(), last_words))
            }
            Some(stop) => Worked::Stopped(stop),
        })
    }

    fn start(&self, result_file: &Path) -> Start {
        let Given { job_id, input } = Given::of(&self.job.identity);
        let mut env: BTreeMap<String, String> =
            self.jobdef.env.iter().map(|(name, value)| (name.0.clone(), value.0.clone())).collect();
        let standing = &self.job.standing;
        let ours = [
            ("ACTA_JOB_ID", job_id),
            ("ACTA_ITEM_ID", self.job.identity.id.to_string()),
            ("ACTA_QUEUE", self.namespace.name().to_string()),
            ("ACTA_ROBOT", self.robot.to_string()),
            ("ACTA_ATTEMPT", standing.attempts.to_string()),
            ("ACTA_FENCE", standing.fence.to_string()),
            ("ACTA_RESULT_FILE", result_file.display().to_string()),
        ];
        env.extend(ours.map(|(name, value)| (name.to_owned(), value)));
        if let Some(parent) = &self.job.identity.traceparent {
            env.insert("TRACEPARENT".to_owned(), parent.to_string());
        }
        Start {
            program: self.jobdef.command.program.clone(),
            arguments: self.jobdef.command.arguments.clone(),
            cwd: self.jobdef.cwd(),
            env,
            stdin: input.to_string(),
        }
    }
}
