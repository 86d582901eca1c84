//! `buildout start`, `heartbeat`, `progress`, `complete`, `fail` and `release`: what a holder says of its item.

use acta_core::job::FailureKind;
use acta_core::store::{Claimant, Failure, Heartbeats, News, Outcome, Report, Settlement, Wave};
use acta_core::{Json, Label, Span};
use anyhow::Result;
use serde::Serialize;

use crate::args::{FailArgs, HeartbeatArgs, HolderArgs};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

/// An answer, with the item that it is about.
#[derive(Serialize)]
struct Told<'a, T> {
    id: &'a acta_core::JobId,
    #[serde(flatten)]
    answer: T,
}

fn claimant(args: &HolderArgs) -> Result<Claimant> {
    let robot = args.robot.as_deref().map(|robot| Label::new("robot", robot)).transpose()?;
    Ok(Claimant { fence: args.fence, robot })
}

impl TryFrom<&FailArgs> for Outcome {
    type Error = anyhow::Error;

    fn try_from(args: &FailArgs) -> Result<Self> {
        let kind = if args.business { FailureKind::Business } else { FailureKind::System };
        Ok(Self::Failed(Failure {
            code: args.code.clone(),
            details: args.details.as_deref().map(Json::new).transpose()?,
            retry_after: args.retry_after.as_deref().map(str::parse::<Span>).transpose()?,
            ..Failure::new(kind, args.reason.clone())
        }))
    }
}

/// Ends a claim.
pub(crate) async fn settle(
    settings: &Settings,
    printer: &mut Printer,
    args: &HolderArgs,
    outcome: Outcome,
) -> Result<Exit> {
    let claimant = claimant(args)?;
    let (store, found) = crate::commands::find(settings, printer, &args.id).await?;
    let id = found.job.identity.id;
    let settlements = vec![Settlement { id: id.clone(), claimant, outcome }];
    for answer in store.settle(Wave { namespace: found.namespace, settlements }).await? {
        let answer = answer?;
        if printer.is_json() {
            printer.json(&Told { id: &id, answer })?;
            continue;
        }
        let again = answer.run_at.map(|at| format!(", and may come again at {at}")).unwrap_or_default();
        printer.line(&format!("{id}: {}{again}", answer.state))?;
    }
    Ok(Exit::Done)
}

/// Passes on what a holder says.
pub(crate) async fn report(settings: &Settings, printer: &mut Printer, args: &HolderArgs, news: News) -> Result<Exit> {
    let claimant = claimant(args)?;
    let (store, found) = crate::commands::find(settings, printer, &args.id).await?;
    let id = found.job.identity.id;
    store.report(Report { namespace: found.namespace, id: id.clone(), claimant, news }).await?;
    let state = store.job(id.clone()).await?.job.standing.state;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "id": id, "state": state }))?;
    } else {
        printer.line(&format!("{id}: {state}"))?;
    }
    Ok(Exit::Done)
}

/// Extends a lease.
pub(crate) async fn heartbeat(settings: &Settings, printer: &mut Printer, args: &HeartbeatArgs) -> Result<Exit> {
    let claimant = claimant(&args.holder)?;
    let lease = args.lease.as_deref().map(str::parse::<Span>).transpose()?;
    let (store, found) = crate::commands::find(settings, printer, &args.holder.id).await?;
    let id = found.job.identity.id;
    let beats = Heartbeats { namespace: found.namespace, beats: vec![(id.clone(), claimant)], lease, worker: None };
    for beat in store.heartbeat(beats).await? {
        let beat = beat?;
        if printer.is_json() {
            printer.json(&Told { id: &id, answer: beat })?;
            continue;
        }
        printer.line(&format!("{id} is held until {}", beat.lease_expires_at))?;
        if beat.cancel_requested {
            printer.complain("somebody wants it stopped: stop, and say how it ended");
        }
    }
    Ok(Exit::Done)
}
