//! `jobs cancel`, `pause`, `resume`, `restart` and `signal`: an operator's act on one job.

use acta_core::Label;
use acta_core::store::{Action, Operation};
use anyhow::Result;

use crate::args::ActArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn act(settings: &Settings, printer: &mut Printer, args: &ActArgs, action: Action) -> Result<Exit> {
    let actor = args.actor.as_deref().filter(|actor| !actor.is_empty());
    let actor = actor.map(|actor| Label::new("actor", actor)).transpose()?;
    let (store, found) = super::find(settings, &args.id).await?;
    let id = found.job.identity.id;
    let done = done(&action);
    let is_cancel = matches!(action, Action::Cancel { .. });
    let operation =
        Operation { namespace: found.namespace, ids: vec![id.clone()], action, actor, reason: args.reason.clone() };
    for answer in store.operate(operation).await? {
        let operated = answer?;
        if printer.is_json() {
            printer.json(&operated)?;
            continue;
        }
        let state = operated.state;
        if operated.cancel_requested && is_cancel {
            printer.line(&format!("{id}: its robot was asked to stop; its next heartbeat tells it"))?;
            printer.complain("hint: --force ends the job now and fences the robot off");
        } else if operated.changed {
            printer.line(&format!("{id}: {done}; it is {state}"))?;
        } else {
            printer.line(&format!("{id}: nothing to do; it is {state}"))?;
        }
    }
    Ok(Exit::Done)
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
