//! Robots: what runs the command of a job definition under a claim.

mod ending;
mod log;
mod process;

pub(crate) use ending::{Ending, outcome_of};
pub(crate) use log::{LogFile, log_path};
pub(crate) use process::{Line, Next, Process, Start};
