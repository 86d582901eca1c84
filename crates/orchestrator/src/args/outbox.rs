//! Arguments of `outbox`.

use acta_core::Span;
use clap::{Subcommand, ValueEnum};

use super::QueueArgs;
use super::operators::WhyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// Print the migration that makes an outbox in a database of your own
    Ddl(DdlArgs),
    /// Carry rows from outboxes into the ledger, as long as this process lives
    Relay(RelayArgs),
    /// Say how outboxes stand: what waits, since when, and what is in quarantine
    Status(SourceArgs),
    /// Look at rows that can't be delivered, and let them go
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List the rows in quarantine, and why they are there
    List(QuarantineListArgs),
    /// Deliver rows after all: they go before what is not delivered yet
    Requeue(ReleaseArgs),
    /// Remove rows for good; what they were, and why they went, is kept beside the outbox
    Discard(DiscardArgs),
}

/// A kind of database.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    Mysql,
    Postgres,
    Sqlite,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DdlArgs {
    /// The database that the migration is for; mysql is for MariaDB, too
    #[arg(long = "for", value_name = "DATABASE")]
    pub(crate) kind: Kind,

    /// What the table is called, perhaps behind a schema and a dot
    #[arg(long, value_name = "NAME", default_value = "acta_outbox")]
    pub(crate) table: String,
}

/// Which outboxes.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// The database of an outbox, `postgres://…`, `mysql://…` or `sqlite:FILE`; several are several outboxes
    #[arg(long = "source", value_name = "URL", required = true)]
    pub(crate) sources: Vec<String>,

    /// What the table is called, perhaps behind a schema and a dot
    #[arg(long, value_name = "NAME", default_value = "acta_outbox")]
    pub(crate) table: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RelayArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,

    /// For how long a relay has an outbox to itself: so long its rows wait where it has died
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) hold: Span,

    /// End when a look finds nothing that may be delivered now; another relay's time is waited for
    #[arg(long)]
    pub(crate) until_idle: bool,
}

/// Which rows in quarantine.
#[derive(Debug, clap::Args)]
pub(crate) struct QuarantineArgs {
    /// The database of the outbox, `postgres://…`, `mysql://…` or `sqlite:FILE`
    #[arg(long, value_name = "URL")]
    pub(crate) source: String,

    /// What the table is called, perhaps behind a schema and a dot
    #[arg(long, value_name = "NAME", default_value = "acta_outbox")]
    pub(crate) table: String,

    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    /// Only rows of this lane
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,

    /// Only these rows, by their numbers
    #[arg(long = "id", value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) ids: Option<Vec<i64>>,

    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct QuarantineListArgs {
    #[command(flatten)]
    pub(crate) which: QuarantineArgs,

    /// Those that were removed from there for good, and why
    #[arg(long)]
    pub(crate) discarded: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) release: ReleaseArgs,

    #[command(flatten)]
    pub(crate) why: WhyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) which: QuarantineArgs,

    /// Only say which rows it would be
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do it; without it nothing is changed
    #[arg(long)]
    pub(crate) yes: bool,
}
