//! One file a command. Each is thin: arguments in, a verb of the store, words out.

mod act;
mod explain;
mod list;
mod logs;
mod run;
mod show;

use std::sync::Arc;

use acta_core::store::{Action, Found};
use acta_core::{Error, JobId, Json, Label, Name, Namespace, Store};
use anyhow::Result;

use crate::args::{Args, Command, JobsCommand};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

/// Runs the command that the arguments name.
pub(crate) async fn run(args: Args, printer: &mut Printer) -> Result<Exit> {
    let settings = Settings::of(&args)?;
    match args.command {
        Command::Run(args) => run::run(&settings, printer, &args).await,
        Command::Jobs(JobsCommand::List(args)) => list::list(&settings, printer, &args).await,
        Command::Jobs(JobsCommand::Show(args)) => show::show(&settings, printer, &args.id).await,
        Command::Jobs(JobsCommand::Logs(args)) => logs::logs(&settings, printer, &args.id).await,
        Command::Jobs(JobsCommand::Explain(args)) => explain::explain(&settings, printer, &args.id).await,
        Command::Jobs(JobsCommand::Cancel(args)) => {
            act::act(&settings, printer, &args.act, Action::Cancel { force: args.force }).await
        }
        Command::Jobs(JobsCommand::Pause(args)) => act::act(&settings, printer, &args, Action::Pause).await,
        Command::Jobs(JobsCommand::Resume(args)) => act::act(&settings, printer, &args, Action::Resume).await,
        Command::Jobs(JobsCommand::Restart(args)) => act::act(&settings, printer, &args, Action::Restart).await,
        Command::Jobs(JobsCommand::Signal(args)) => {
            let name = Name::new("signal", &args.name)?;
            let action = Action::Signal { name, payload: Json::new(&args.payload)? };
            act::act(&settings, printer, &args.act, action).await
        }
    }
}

/// The job that a person means, by its id or by the job id of its run, and the ledger that it is in.
async fn find(settings: &Settings, text: &str) -> Result<(Arc<dyn Store>, Found)> {
    let id = JobId::new(text)?;
    let store = settings.open()?;
    let found = match store.job(id).await {
        Err(fault) if fault.is_not_found() => find_run(store.as_ref(), text).await?.ok_or(fault)?,
        answer => answer?,
    };
    Ok((store, found))
}

/// A run's job id is the deduplication key of its item, and names its queue: `job-<queue>-<time36>-<rest>`.
async fn find_run(store: &dyn Store, text: &str) -> Result<Option<Found>> {
    let Some(inner) = text.strip_prefix("job-") else { return Ok(None) };
    let mut parts = inner.rsplitn(3, '-');
    let Some(queue) = parts.nth(2) else { return Ok(None) };
    let Ok(namespace) = Namespace::job_queue(queue) else { return Ok(None) };
    let Some(id) = store.key_holder(namespace, Label::new("job id", text)?).await? else { return Ok(None) };
    match store.job(id).await {
        Err(Error::NotFound { .. }) => Ok(None),
        answer => Ok(Some(answer?)),
    }
}
