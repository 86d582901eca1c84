//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Job queues on a durable ledger.
///
/// Exit codes: 0 done, 1 the job failed, 2 wrong usage or bad input file, 3 claim failure, 4 nothing to claim,
/// 5 refused in this state, 6 not found, 7 ledger unavailable or unreadable, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "orchestrator", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// The folder of the ledger, its logs and settings
    #[arg(long, global = true, env = "ORCHESTRATOR_ROOT", default_value = ".orchestrator", value_name = "FOLDER")]
    pub(crate) root: PathBuf,

    /// What the ledger is kept in
    #[arg(long, global = true, env = "TS_QUEUE_PROVIDER", default_value = "sqlite", value_name = "PROVIDER")]
    pub(crate) provider: String,

    /// Print JSON: one item as an object, several as lines
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Enqueue the job of a definition, run it here, and print how it ended
    Run(RunArgs),
    /// Look at jobs, and cancel them
    #[command(subcommand)]
    Jobs(JobsCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The job definition, a JSON file
    #[arg(value_name = "JOBDEF.JSON")]
    pub(crate) jobdef: PathBuf,

    /// The name to claim under [default: the machine's name and the process's number]
    #[arg(long, value_name = "ID")]
    pub(crate) robot: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(ListArgs),
    /// Show one job: outcome, output, timing, history
    Show(IdArgs),
    /// Print what a job wrote to its standard output and error
    Logs(IdArgs),
    /// Say why a job is where it is, and what will move it
    Explain(IdArgs),
    /// End a job: at once if nobody works on it, else by asking its robot
    Cancel(CancelArgs),
    /// Hold a job: it keeps its place and is not claimed
    Pause(ActArgs),
    /// Let a held job go on
    Resume(ActArgs),
    /// Run a failed or cancelled job anew, at the end of its queue and lane
    Restart(ActArgs),
    /// Tell a job something that it waits for, or will wait for
    Signal(SignalArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct IdArgs {
    /// The item's id, or the job id of a run
    pub(crate) id: String,
}

/// An act on one job.
#[derive(Debug, clap::Args)]
pub(crate) struct ActArgs {
    /// The item's id, or the job id of a run
    pub(crate) id: String,

    /// Why; kept in the job's history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Who; kept in the job's history
    #[arg(long, env = "USER", value_name = "NAME", hide_env_values = true)]
    pub(crate) actor: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) act: ActArgs,

    /// Do not ask the robot: end the job now and fence the robot off
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SignalArgs {
    #[command(flatten)]
    pub(crate) act: ActArgs,

    /// The signal's name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// What comes with it
    #[arg(long, value_name = "JSON", default_value = "null")]
    pub(crate) payload: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    /// Only with this status, or this state of the ledger
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,

    /// Only of this lane
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,

    /// Only with this business key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Only enqueued since an instant (2026-10-03T09:12:00Z), or in the last while (2h)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
}

/// Which namespace; at most one of the three.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct QueueArgs {
    /// A job queue: queues/QUEUE
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// A transaction queue: transactions/QUEUE
    #[arg(long, value_name = "QUEUE")]
    pub(crate) transactions: Option<String>,

    /// A plain namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}
