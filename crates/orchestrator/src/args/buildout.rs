//! `buildout`

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{ListArgs, QueueArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum BuildoutCommand {
    /// Put items into a queue; prints their ids, one a line
    Add(Box<AddArgs>),
    /// List the items of a queue, newest first
    List(ListArgs),
    /// Take the next items of a queue; prints them as JSON, or exits with 4 where there is nothing to take
    Claim(ClaimArgs),
    /// Say that work on a claimed item has begun
    Start(HolderArgs),
    /// Extend the lease of a claimed item
    Heartbeat(HeartbeatArgs),
    /// Say how far a claimed item is
    Progress(ProgressArgs),
    /// End a claimed item as done
    Complete(CompleteArgs),
    /// End a claimed item as failed, or let it be tried again
    Fail(FailArgs),
    /// Give a claimed item back unworked
    Release(HolderArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    /// What to work on
    #[arg(long, value_name = "JSON", conflicts_with = "from")]
    pub(crate) payload: Option<String>,

    /// Many items, all or none, from JSON lines or CSV; - is the standard input
    ///
    /// A line of JSON is an object with `payload` and any of lane, key, unique, maxAttempts, retryable, runAt,
    /// expiresAt, lease, priority, name. Columns of a CSV with such names mean the same; the others are the payload, as
    /// strings. The flags say what a line leaves open.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// What the file is [default: by its ending; JSON lines for -]
    #[arg(long, value_name = "FORMAT", requires = "from")]
    pub(crate) format: Option<Format>,

    /// Keep in order with the others of this lane: one at a time
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,

    /// A business key to find the item by, such as an invoice's number
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Add nothing where the key was used before; prints the id of the item that has it
    #[arg(long)]
    pub(crate) unique: bool,

    /// How many claims may count [default: the definition's; 1 in a queue, 3 in a transaction queue, 15 elsewhere]
    #[arg(long, value_name = "N")]
    pub(crate) max_attempts: Option<u32>,

    /// Whether a failure may go back to the queue
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) retryable: Option<bool>,

    /// Not before this instant (2026-10-03T09:12:00Z), or this while from now (2h)
    #[arg(long, value_name = "WHEN")]
    pub(crate) run_at: Option<String>,

    /// Failed if not claimed by this instant, or within this while
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires_at: Option<String>,

    /// The lease of a claim that asks for none, such as 30m
    #[arg(long, value_name = "WHILE")]
    pub(crate) lease: Option<String>,

    /// 0 to 100, higher first; plain namespaces only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) priority: Option<u8>,

    /// The job definition that says what the item leaves open
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// An object a line
    Jsonl,
    /// Columns with a heading
    Csv,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClaimArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    /// The name to claim under
    #[arg(long, value_name = "ID")]
    pub(crate) robot: String,

    /// For how long, such as 30m [default: the item's lease, or the queue's]
    #[arg(long, value_name = "WHILE")]
    pub(crate) lease: Option<String>,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: usize,

    /// Only if this item is the next; otherwise nothing is claimed, exit code 3
    #[arg(long, value_name = "ID")]
    pub(crate) expect: Option<String>,
}

/// A claimed item and who has it.
#[derive(Debug, clap::Args)]
pub(crate) struct HolderArgs {
    /// The item's id
    pub(crate) id: String,

    /// The name that it was claimed under
    #[arg(long, value_name = "ID", required_unless_present = "fence")]
    pub(crate) robot: Option<String>,

    /// The fence that the claim has printed: it tells two claims under one name apart
    #[arg(long, value_name = "N")]
    pub(crate) fence: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HeartbeatArgs {
    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    /// For how long from now, such as 30m [default: as the item or its queue says]
    #[arg(long, value_name = "WHILE")]
    pub(crate) lease: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProgressArgs {
    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    /// How far it is, for people
    pub(crate) text: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    /// The result
    #[arg(long, value_name = "JSON")]
    pub(crate) output: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailArgs {
    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    /// What went wrong, for people
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,

    /// The business rejects it: in a transaction queue it is not tried again
    #[arg(long)]
    pub(crate) business: bool,

    /// What went wrong, for programs
    #[arg(long, value_name = "CODE")]
    pub(crate) code: Option<String>,

    /// More, for programs
    #[arg(long, value_name = "JSON")]
    pub(crate) details: Option<String>,

    /// Not again before this while has passed, such as 5m, and at most a tenth later [default: the item's back-off]
    #[arg(long, value_name = "WHILE")]
    pub(crate) retry_after: Option<String>,
}
