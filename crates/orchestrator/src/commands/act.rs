//! `jobs cancel`, `pause`, `resume`, `restart` and `signal`: an operator's act on one job.

use acta_core::Label;
use acta_core::store::{Action, Operation};
use anyhow::Result;

use crate::args::ActArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn act(settings: &Settings, printer: &mut Printer, args: &ActArgs, action: Action) -> Result<Exit> {
    let actor = args.actor.as_deref().map(|actor| Label::new("actor", actor)).transpose()?;
    let store = settings.open()?;
    let found = super::find(store.as_ref(), &args.id).await?;
    let id = found.job.identity.id;
    let operation =
        Operation { namespace: found.namespace, ids: vec![id.clone()], action, actor, reason: args.reason.clone() };
    for answer in store.operate(operation).await? {
        let operated = answer?;
        if printer.is_json() {
            printer.json(&operated)?;
            continue;
        }
        let unchanged = if operated.changed { "" } else { " already" };
        printer.line(&format!("{id} is {}{unchanged}", operated.state))?;
        if operated.cancel_requested {
            printer.complain("its robot was asked to stop; its next heartbeat tells it");
            printer.complain("hint: --force ends the job now and fences the robot off");
        }
    }
    Ok(Exit::Done)
}
