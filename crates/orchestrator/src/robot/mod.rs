//! Robots: what runs the command of a job definition under a claim.

mod ending;
mod given;
mod interrupts;
mod log;
mod process;
mod watch;
mod work;

use acta_core::Label;
use anyhow::Result;

use ending::{Ending, outcome_of};
pub(crate) use given::Given;
pub(crate) use interrupts::Interrupts;
pub(crate) use log::{LogFile, log_path};
use process::{Line, Next, Process, Start};
pub(crate) use watch::{Order, Orders, STOPPING, Stop};
use watch::{Watch, Watched};
pub(crate) use work::{Bench, Work, Worked};

/// The name to claim under: the one that was given, or the machine's name and the process's number.
pub(crate) fn robot_name(given: Option<&str>) -> Result<Label> {
    if let Some(name) = given {
        return Ok(Label::new("robot", name)?);
    }
    let machine = rustix::system::uname();
    let name = machine.nodename().to_string_lossy();
    let printable: String = name.chars().filter(|character| !character.is_control()).take(100).collect();
    Ok(Label::new("robot", &format!("{printable}-{}", std::process::id()))?)
}
