//! The command line.

mod buildout;
mod jobs;
mod operators;
mod outbox;
mod worker;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use buildout::{AddArgs, BuildoutCommand, ClaimArgs, FailArgs, Format, HeartbeatArgs, HolderArgs};
pub(crate) use jobs::{ActArgs, JobsCommand, ListArgs, WhichArgs};
pub(crate) use operators::{
    BackupArgs, ConfigCommand, CopyArgs, LaneArgs, LaneWhyArgs, LanesCommand, LanesListArgs, MigrateArgs, QueueWhyArgs,
    QueuesCommand, SkipArgs,
};
pub(crate) use outbox::{
    DdlArgs, DiscardArgs, Kind, OutboxCommand, QuarantineArgs, QuarantineCommand, QuarantineListArgs, RelayArgs,
    ReleaseArgs, SourceArgs,
};
pub(crate) use worker::WorkerArgs;

/// Job queues on a durable ledger.
///
/// Exit codes: 0 done, 1 the job failed or the doctor found something, 2 wrong usage or bad input file, 3 claim
/// failure, 4 nothing to claim, 5 refused in this state, 6 not found, 7 ledger unavailable or unreadable, 130
/// interrupted.
#[derive(Debug, Parser)]
#[command(name = "orchestrator", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// The folder of the ledger, its logs and settings [default: .orchestrator]
    #[arg(long, global = true, env = "ORCHESTRATOR_ROOT", value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// What the ledger is kept in: sqlite, file or postgres [default: sqlite]
    #[arg(long, global = true, env = "TS_QUEUE_PROVIDER", value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// The database of a ledger in PostgreSQL, `postgres://USER:PASSWORD@HOST/DATABASE`
    #[arg(long, global = true, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,

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
    /// Work off a queue: take its jobs and run them here, as long as this process lives
    Worker(WorkerArgs),
    /// Look at jobs, explain them, and act on them
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Put items into a queue, claim them, and say how they ended
    #[command(subcommand)]
    Buildout(BuildoutCommand),
    /// Look at lanes, pause them, and let them go on
    #[command(subcommand)]
    Lanes(LanesCommand),
    /// Look at queues, pause them, and let them go on
    #[command(subcommand)]
    Queues(QueuesCommand),
    /// Carry what applications have saved in their own databases into the ledger
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Copy a whole ledger to another substrate; the source takes no more writes
    Copy(CopyArgs),
    /// Write a copy of the ledger as it is now, while others work with it
    Backup(BackupArgs),
    /// Bring the ledger's schema to this release, making it if there is none
    Migrate(MigrateArgs),
    /// Look for what is wrong with the ledger, and say how to mend it
    Doctor,
    /// Look at the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder
        folder: PathBuf,
    },
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
