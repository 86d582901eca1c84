//! Exit codes, and how an error ends the process.

use std::fmt;
use std::process::ExitCode;

use crate::printer::Printer;

/// What the process's exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done,
    /// The run's job failed, or the doctor found something.
    Failed,
    /// Wrong usage, or a bad input file.
    Usage,
    /// A claim failure: another item, or a lost lease.
    ClaimFailure,
    /// There is nothing to claim.
    Nothing,
    /// Refused in this state.
    Refused,
    /// Not found.
    NotFound,
    /// The substrate is unavailable or unreadable.
    Unavailable,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::ClaimFailure => 3,
            Self::Nothing => 4,
            Self::Refused => 5,
            Self::NotFound => 6,
            Self::Unavailable => 7,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error of the command line itself, with its exit code and a way out.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// The same with a way out.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// Nobody reads the output any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|fault| fault.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Prints an error and its hint, and says which exit code it is.
pub(crate) fn report(error: &anyhow::Error, printer: &mut Printer) -> Exit {
    if is_broken_pipe(error) {
        // Whoever read the output has seen enough.
        return Exit::Done;
    }
    let (exit, hint) = match (error.downcast_ref::<Fault>(), error.downcast_ref::<acta_core::Error>()) {
        (Some(fault), _) => (fault.exit, fault.hint.clone()),
        (None, Some(fault)) => (exit_of(fault), fault.hint()),
        (None, None) => (Exit::Unavailable, None),
    };
    printer.complain(&format!("error: {error:#}"));
    if let Some(hint) = hint {
        printer.complain(&format!("hint: {hint}"));
    }
    exit
}

/// Which exit code an error of the ledger is.
pub(crate) fn exit_of(fault: &acta_core::Error) -> Exit {
    if fault.is_lease_lost() {
        Exit::ClaimFailure
    } else if fault.is_refused() || fault.is_closed() {
        Exit::Refused
    } else if fault.is_not_found() {
        Exit::NotFound
    } else if fault.is_invalid() {
        Exit::Usage
    } else {
        Exit::Unavailable
    }
}
