//! `jobs logs`

use std::io::ErrorKind;

use anyhow::{Context, Result};

use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::robot::log_path;
use crate::settings::Settings;

pub(crate) async fn logs(settings: &Settings, printer: &mut Printer, id: &str) -> Result<Exit> {
    let (_, found) = super::find(settings, printer, id).await?;
    let path = log_path(&settings.logs(), &found.job.identity.id);
    match std::fs::read(&path) {
        Ok(bytes) => {
            printer.log(&String::from_utf8_lossy(&bytes))?;
            Ok(Exit::Done)
        }
        Err(fault) if fault.kind() == ErrorKind::NotFound => {
            let message = format!("there is no log of {} in {}", found.job.identity.id, settings.root().display());
            let hint = "a log is kept on the machine that ran the job; a job that has not run has none";
            Err(Fault::new(Exit::NotFound, message).hint(hint).into())
        }
        Err(fault) => Err(fault).with_context(|| path.display().to_string()),
    }
}
