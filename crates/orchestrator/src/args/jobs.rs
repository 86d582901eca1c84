//! `jobs`

use clap::Subcommand;

use super::QueueArgs;
use super::operators::WhyArgs;

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
    /// End jobs: at once if nobody works on them, else by asking their robots
    Cancel(CancelArgs),
    /// Hold jobs: they keep their places and are not claimed
    Pause(ActArgs),
    /// Let held jobs go on
    Resume(ActArgs),
    /// Run failed or cancelled jobs anew, at the end of their queue and lane
    Restart(ActArgs),
    /// Tell jobs something that they wait for, or will wait for
    Signal(SignalArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct IdArgs {
    /// The item's id, or the job id of a run
    pub(crate) id: String,
}

/// An act on jobs: on those named, or on all that the filters take.
#[derive(Debug, clap::Args)]
pub(crate) struct ActArgs {
    /// Items' ids, or the job ids of runs; without one, the filters say which
    #[arg(value_name = "ID", conflicts_with_all = ["queue", "transactions", "namespace", "status", "lane", "key", "since"])]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// Only say which jobs it would be
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask before acting on all that the filters take
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) why: WhyArgs,
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
    pub(crate) which: WhichArgs,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
}

/// Which jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArgs {
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
}
