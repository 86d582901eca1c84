//! `lanes`, `queues`, `copy`, `backup`, `config`

use std::path::PathBuf;

use clap::Subcommand;

use super::QueueArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum LanesCommand {
    /// List the lanes that have live items or are paused, with what is at their heads
    List(LanesListArgs),
    /// Show the live items of a lane, in order
    Show(LaneArgs),
    /// Hold a lane: what is claimed ends, nothing more of it is claimed
    Pause(LaneWhyArgs),
    /// Let a paused lane go on
    Resume(LaneWhyArgs),
    /// End the item at the head of a lane, so that the next one comes
    Skip(SkipArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct LanesListArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LaneArgs {
    /// The lane
    pub(crate) lane: String,

    #[command(flatten)]
    pub(crate) queue: QueueArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LaneWhyArgs {
    #[command(flatten)]
    pub(crate) lane: LaneArgs,

    #[command(flatten)]
    pub(crate) why: WhyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SkipArgs {
    #[command(flatten)]
    pub(crate) lane: LaneArgs,

    #[command(flatten)]
    pub(crate) why: WhyArgs,

    /// Only say which item it would be
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Who does something, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Who; kept in the history
    #[arg(long, env = "USER", value_name = "NAME", hide_env_values = true)]
    pub(crate) actor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// List the queues, with how many items of each status they have
    List,
    /// Show a queue: its settings, its items by state, what happened lately, who works on it
    Show(QueueArgs),
    /// Hold a queue: what is claimed ends, nothing more of it is claimed
    Pause(QueueWhyArgs),
    /// Let a paused queue go on
    Resume(QueueWhyArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct QueueWhyArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    #[command(flatten)]
    pub(crate) why: WhyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The ledger to copy, `file:FOLDER` or `sqlite:FILE`
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,

    /// Where to: an empty ledger, or one that is not there
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,

    /// Give up a copy that can't be finished: the source takes writes again
    #[arg(long)]
    pub(crate) give_up: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The folder to write it to, which `--root` opens; nothing may be there yet
    pub(crate) path: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting, and where it comes from
    Show,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// Only tell what would be applied
    #[arg(long, conflicts_with = "sql")]
    pub(crate) dry_run: bool,

    /// Print the script instead, for somebody else to run
    #[arg(long)]
    pub(crate) sql: bool,
}
