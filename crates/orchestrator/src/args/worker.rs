//! `worker`

use std::path::PathBuf;

use acta_core::Span;

use super::QueueArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,

    /// How many jobs run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) robots: u16,

    /// Job definitions: files, or folders of *.json files [default: the folder jobdefs of the root]
    ///
    /// Only jobs whose name has a definition here are taken; others are left to other workers.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) jobdefs: Vec<PathBuf>,

    /// The name to claim under [default: the machine's name and the process's number]
    #[arg(long, value_name = "ID")]
    pub(crate) robot: Option<String>,

    /// How long running jobs may go on once this process is asked to end
    #[arg(long, value_name = "WHILE", default_value = "25s")]
    pub(crate) grace: Span,

    /// How long it waits before it looks for work though nothing told it that there is some
    #[arg(long, value_name = "WHILE", default_value = "1s")]
    pub(crate) poll: Span,

    /// End once there is nothing to claim and nothing runs; exit code 4 if there was nothing at all
    #[arg(long)]
    pub(crate) once: bool,
}
