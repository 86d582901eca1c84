//! `buildout claim`

use acta_core::store::{Claim, ClaimOutcome, Nothing, Why};
use acta_core::{Item, JobId, Label, Namespace, Span};
use anyhow::{Context, Result};

use crate::args::ClaimArgs;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn claim(settings: &Settings, printer: &mut Printer, args: &ClaimArgs) -> Result<Exit> {
    let namespace = args.queue.the_namespace()?;
    let claim = Claim {
        count: args.count,
        lease: args.lease.as_deref().map(str::parse::<Span>).transpose()?,
        expect: args.expect.as_deref().map(JobId::new).transpose()?,
        why: true,
        ..Claim::one(namespace.clone(), Label::new("robot", &args.robot)?)
    };
    claim.check()?;
    match settings.open(printer).await?.claim(claim).await?.outcome {
        ClaimOutcome::Claimed(jobs) => {
            for job in &jobs {
                let id = &job.identity.id;
                printer.json(&Item::new(&namespace, job)).with_context(|| {
                    format!("{id} was claimed, but could not be printed; `buildout release` gives it back")
                })?;
            }
            Ok(Exit::Done)
        }
        ClaimOutcome::Nothing(nothing) => {
            printer.complain(&format!("nothing to claim: {}", why(&namespace, nothing)));
            Ok(Exit::Nothing)
        }
        ClaimOutcome::Mismatch { expected, found } => {
            let message = match &found {
                Some(found) => format!("the next item of {namespace} is {found}, not {expected}; neither was claimed"),
                None => format!("{namespace} has no item to claim, so not {expected} either"),
            };
            let hint = format!("`jobs explain {expected}` tells what is before it");
            Err(Fault::new(Exit::ClaimFailure, message).hint(hint).into())
        }
    }
}

/// The reason, for people.
fn why(namespace: &Namespace, nothing: Option<Nothing>) -> String {
    let Some(Nothing { why, next_at, .. }) = nothing else { return format!("{namespace} has no candidate") };
    let reason = match why {
        Why::NoSuchQueue => format!("there is no {namespace}"),
        Why::QueuePaused => format!("{namespace} is paused"),
        Why::Empty => format!("{namespace} has no open item"),
        Why::OtherNames => "all that could come is of other definitions".into(),
        Why::Leased => "robots have all that could come".into(),
        Why::Deferred => "all that could come waits for its time".into(),
        Why::Held => "all that could come is paused or waits for a signal".into(),
    };
    match next_at {
        Some(at) => format!("{reason}; the next may come at {at}"),
        None => reason,
    }
}
