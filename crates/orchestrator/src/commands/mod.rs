//! One file a command. Each is thin: arguments in, a verb of the store, words out.

mod act;
mod activity;
mod buildout;
mod config;
mod doctor;
mod explain;
mod lanes;
mod list;
mod logs;
mod migrate;
mod outbox;
mod queues;
mod run;
mod show;
mod which;
mod whole;
mod worker;

use std::sync::Arc;

use acta_core::store::{Action, Found, News, Outcome};
use acta_core::{Error, JobId, Json, Label, Name, Namespace, Store};
use anyhow::Result;

use crate::args::{BuildoutCommand, Command, ConfigCommand, JobsCommand};
use crate::exit::{Exit, exit_of};
use crate::printer::Printer;
use crate::settings::Settings;

/// Runs the command that the arguments name.
pub(crate) async fn run(settings: &Settings, command: Command, printer: &mut Printer) -> Result<Exit> {
    match command {
        Command::Run(args) => run::run(settings, printer, &args).await,
        Command::Worker(args) => worker::worker(settings, printer, &args).await,
        Command::Jobs(command) => jobs(settings, printer, command).await,
        Command::Buildout(command) => buildout(settings, printer, command).await,
        Command::Lanes(command) => lanes::lanes(settings, printer, command).await,
        Command::Queues(command) => queues::queues(settings, printer, command).await,
        Command::Outbox(command) => outbox::outbox(settings, printer, command).await,
        Command::Copy(args) => whole::copy(settings, printer, &args).await,
        Command::Backup(args) => whole::backup(settings, printer, &args.path).await,
        Command::Migrate(args) => migrate::migrate(settings, printer, &args).await,
        Command::Doctor => doctor::doctor(settings, printer).await,
        Command::Config(ConfigCommand::Show) => config::show(settings, printer),
        Command::Completions { shell } => config::completions(shell),
        Command::Man { folder } => config::man(printer, &folder),
    }
}

async fn jobs(settings: &Settings, printer: &mut Printer, command: JobsCommand) -> Result<Exit> {
    match command {
        JobsCommand::List(args) => list::list(settings, printer, &args).await,
        JobsCommand::Show(args) => show::show(settings, printer, &args.id).await,
        JobsCommand::Logs(args) => logs::logs(settings, printer, &args.id).await,
        JobsCommand::Explain(args) => explain::explain(settings, printer, &args.id).await,
        JobsCommand::Cancel(args) => act::act(settings, printer, &args.act, Action::Cancel { force: args.force }).await,
        JobsCommand::Pause(args) => act::act(settings, printer, &args, Action::Pause).await,
        JobsCommand::Resume(args) => act::act(settings, printer, &args, Action::Resume).await,
        JobsCommand::Restart(args) => act::act(settings, printer, &args, Action::Restart).await,
        JobsCommand::Signal(args) => {
            let name = Name::new("signal", &args.name)?;
            let action = Action::Signal { name, payload: Json::new(&args.payload)? };
            act::act(settings, printer, &args.act, action).await
        }
    }
}

async fn buildout(settings: &Settings, printer: &mut Printer, command: BuildoutCommand) -> Result<Exit> {
    match command {
        BuildoutCommand::Add(args) => buildout::add(settings, printer, &args).await,
        BuildoutCommand::List(args) => {
            args.which.queue.the_namespace()?;
            list::list(settings, printer, &args).await
        }
        BuildoutCommand::Claim(args) => buildout::claim(settings, printer, &args).await,
        BuildoutCommand::Start(holder) => buildout::report(settings, printer, &holder, News::Started).await,
        BuildoutCommand::Heartbeat(args) => buildout::heartbeat(settings, printer, &args).await,
        BuildoutCommand::Progress(args) => {
            buildout::report(settings, printer, &args.holder, News::Progress(args.text)).await
        }
        BuildoutCommand::Complete(args) => {
            let output = args.output.as_deref().map(Json::new).transpose()?;
            buildout::settle(settings, printer, &args.holder, Outcome::Succeeded(output)).await
        }
        BuildoutCommand::Fail(args) => {
            buildout::settle(settings, printer, &args.holder, Outcome::try_from(&args)?).await
        }
        BuildoutCommand::Release(holder) => buildout::settle(settings, printer, &holder, Outcome::Release).await,
    }
}

/// Complains about namespaces that can't be read; the others were shown.
fn unreadable(printer: &Printer, faults: &[Error]) -> Exit {
    for fault in faults {
        printer.complain(&format!("error: {fault}"));
    }
    faults.first().map_or(Exit::Done, exit_of)
}

/// The job that a person means, by its id or by the job id of its run, and the ledger that it is in.
async fn find(settings: &Settings, printer: &Printer, text: &str) -> Result<(Arc<dyn Store>, Found)> {
    let id = JobId::new(text)?;
    let store = settings.open(printer).await?;
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
