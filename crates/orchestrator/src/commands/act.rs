//! `jobs cancel`, `pause`, `resume`, `restart` and `signal`: an operator's act on jobs, by id or by filter.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use acta_core::store::{Action, Operated, Operation};
use acta_core::{Error, JobId, Label, Namespace, State, Store};
use anyhow::Result;
use serde::Serialize;

use crate::args::ActArgs;
use crate::exit::{Exit, Fault, exit_of};
use crate::printer::Printer;
use crate::settings::Settings;

/// How many jobs one page, and one call, has.
const PAGE: usize = 1_000;

/// A job to act on.
struct Target {
    namespace: Namespace,
    id: JobId,
    state: State,
}

#[derive(Serialize)]
struct Told<'a> {
    id: &'a JobId,
    #[serde(flatten)]
    operated: Operated,
}

pub(crate) async fn act(settings: &Settings, printer: &mut Printer, args: &ActArgs, action: Action) -> Result<Exit> {
    let actor = actor(args.why.actor.as_deref())?;
    let by_filter = args.ids.is_empty();
    let mut unreadable = Vec::new();
    let (store, mut targets) = if by_filter {
        filtered(settings, printer, args, &action, &mut unreadable).await?
    } else {
        named(settings, printer, args).await?
    };
    let mut exit = super::unreadable(printer, &unreadable);
    if args.dry_run {
        pretend(printer, &action, &targets)?;
        return Ok(exit);
    }
    if by_filter && targets.is_empty() {
        printer.complain("no such jobs; nothing was done");
        return Ok(exit);
    }
    if by_filter && !args.yes && !is_confirmed(printer, &action, targets.len())? {
        printer.complain("nothing was done");
        return Ok(Exit::Done);
    }
    // One call a queue, and in it the order that they have.
    targets.sort_by(|one, other| one.namespace.cmp(&other.namespace));
    while let Some(first) = targets.first() {
        let namespace = first.namespace.clone();
        let same = targets.iter().take(PAGE).take_while(|target| target.namespace == namespace).count();
        let ids: Vec<JobId> = targets.drain(..same).map(|target| target.id).collect();
        let (actor, reason) = (actor.clone(), args.why.reason.clone());
        let operation = Operation { namespace, ids: ids.clone(), action: action.clone(), actor, reason };
        for (id, answer) in ids.iter().zip(store.operate(operation).await?) {
            match answer {
                Ok(operated) => tell(printer, &action, id, operated)?,
                Err(fault) => exit = complain(printer, &fault),
            }
        }
    }
    Ok(exit)
}

/// Who acts, for the history.
pub(super) fn actor(given: Option<&str>) -> Result<Option<Label>> {
    Ok(given.filter(|actor| !actor.is_empty()).map(|actor| Label::new("actor", actor)).transpose()?)
}

async fn named(settings: &Settings, printer: &Printer, args: &ActArgs) -> Result<(Arc<dyn Store>, Vec<Target>)> {
    let mut store = None;
    let mut targets: Vec<Target> = Vec::new();
    for text in &args.ids {
        let (found_in, found) = super::find(settings, printer, text).await?;
        store.get_or_insert(found_in);
        let target = Target { namespace: found.namespace, id: found.job.identity.id, state: found.job.standing.state };
        if !targets.iter().any(|other| other.id == target.id) {
            targets.push(target);
        }
    }
    let store = match store {
        Some(store) => store,
        None => settings.open(printer).await?,
    };
    Ok((store, targets))
}

/// The jobs that the filters take and that the act can be done to, oldest first.
async fn filtered(
    settings: &Settings,
    printer: &Printer,
    args: &ActArgs,
    action: &Action,
    unreadable: &mut Vec<Error>,
) -> Result<(Arc<dyn Store>, Vec<Target>)> {
    if !args.which.says_something() {
        let hint = "name jobs by their ids, or say which with --queue, --status, --lane, --key or --since";
        return Err(Fault::new(Exit::Usage, "no jobs are named").hint(hint).into());
    }
    let mut filter = args.which.filter(settings, PAGE)?;
    let store = settings.open(printer).await?;
    let mut targets = Vec::new();
    loop {
        let page = store.jobs(filter.clone()).await?;
        for fault in page.unreadable {
            if !unreadable.contains(&fault) {
                unreadable.push(fault);
            }
        }
        let able = page.jobs.into_iter().filter(|found| action.applies_to(found.job.standing.state));
        targets.extend(able.map(|found| Target {
            namespace: found.namespace,
            id: found.job.identity.id,
            state: found.job.standing.state,
        }));
        match page.next {
            Some(next) => filter.after_row = Some(next),
            None => break,
        }
    }
    targets.reverse();
    Ok((store, targets))
}

fn pretend(printer: &Printer, action: &Action, targets: &[Target]) -> Result<Exit> {
    for Target { id, state, .. } in targets {
        if printer.is_json() {
            printer.json(&serde_json::json!({ "id": id, "state": state }))?;
        } else {
            printer.line(&format!("{id}: {state}"))?;
        }
    }
    printer.complain(&format!("{} would be {}; nothing was done", jobs(targets.len()), done(action)));
    Ok(Exit::Done)
}

fn jobs(count: usize) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}

/// Asks on a terminal; elsewhere nobody could answer.
fn is_confirmed(printer: &Printer, action: &Action, count: usize) -> Result<bool> {
    let question = format!("{} will be {}", jobs(count), done(action));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let hint = "--yes does it without asking, --dry-run shows which";
        return Err(Fault::new(Exit::Usage, format!("{question}; nobody is there to confirm it")).hint(hint).into());
    }
    printer.complain(&format!("{question}. Go on? [y/N]"));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn tell(printer: &Printer, action: &Action, id: &JobId, operated: Operated) -> Result<()> {
    if printer.is_json() {
        return printer.json(&Told { id, operated });
    }
    let state = operated.state;
    if operated.cancel_requested && matches!(action, Action::Cancel { .. } | Action::Skip) {
        printer.line(&format!("{id}: its robot was asked to stop; its next heartbeat tells it"))?;
        printer.complain(&format!("hint: `jobs cancel --force {id}` ends the job now and fences the robot off"));
    } else if operated.changed {
        let state = if done(action) == state.word() { String::new() } else { format!(" ({state})") };
        printer.line(&format!("{id}: {}{state}", done(action)))?;
    } else {
        printer.line(&format!("{id}: nothing to do; it is {state}"))?;
    }
    Ok(())
}

fn complain(printer: &Printer, fault: &Error) -> Exit {
    printer.complain(&format!("error: {fault}"));
    if let Some(hint) = fault.hint() {
        printer.complain(&format!("hint: {hint}"));
    }
    exit_of(fault)
}

/// What was done, in a word.
fn done(action: &Action) -> &'static str {
    match action {
        Action::Cancel { .. } | Action::Skip => "cancelled",
        Action::Pause => "paused",
        Action::Resume => "resumed",
        Action::Reprioritise(_) => "reprioritised",
        Action::Postpone(_) => "postponed",
        Action::Restart => "restarted",
        Action::Signal { .. } => "signalled",
    }
}

/// Ends the item at the head of a lane, or says which one it would be.
pub(super) async fn skip(
    settings: &Settings,
    printer: &mut Printer,
    (namespace, head): (Namespace, (JobId, State)),
    args: &crate::args::SkipArgs,
) -> Result<Exit> {
    let (id, state) = head;
    let targets = [Target { namespace: namespace.clone(), id: id.clone(), state }];
    if args.dry_run {
        return pretend(printer, &Action::Skip, &targets);
    }
    let (actor, reason) = (actor(args.why.actor.as_deref())?, args.why.reason.clone());
    let operation = Operation { namespace, ids: vec![id.clone()], action: Action::Skip, actor, reason };
    for answer in settings.open(printer).await?.operate(operation).await? {
        tell(printer, &Action::Skip, &id, answer?)?;
    }
    Ok(Exit::Done)
}
