//! `lanes`

use acta_core::explain::LaneView;
use acta_core::store::{Found, Hold, JobFilter, LaneFilter};
use acta_core::{Error, Item, JobId, Label, Namespace, State, Store};
use anyhow::Result;

use super::act;
use crate::args::{LaneArgs, LaneWhyArgs, LanesCommand, LanesListArgs, SkipArgs};
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn lanes(settings: &Settings, printer: &mut Printer, command: LanesCommand) -> Result<Exit> {
    match command {
        LanesCommand::List(args) => list(settings, printer, &args).await,
        LanesCommand::Show(args) => show(settings, printer, &args).await,
        LanesCommand::Pause(args) => hold(settings, printer, &args, true).await,
        LanesCommand::Resume(args) => hold(settings, printer, &args, false).await,
        LanesCommand::Skip(args) => skip(settings, printer, &args).await,
    }
}

async fn list(settings: &Settings, printer: &Printer, args: &LanesListArgs) -> Result<Exit> {
    let limit = usize::from(args.limit);
    let filter = LaneFilter { limit: limit + 1, ..LaneFilter::all(args.queue.the_namespace()?) };
    let mut views = settings.open(printer).await?.lanes(filter).await?;
    let are_more = views.len() > limit;
    views.truncate(limit);
    if printer.is_json() {
        for view in &views {
            printer.json(view)?;
        }
        return Ok(Exit::Done);
    }
    if views.is_empty() {
        printer.complain("no lane has live items, and none is paused");
        return Ok(Exit::Done);
    }
    printer.table(
        &["LANE", "LIVE", "PAUSED", "HEAD", "STATE", "HELD BY", "UNTIL"],
        &views.iter().map(row).collect::<Vec<_>>(),
    )?;
    if are_more {
        printer.complain(&format!("these are the first {limit}; --limit shows more"));
    }
    Ok(Exit::Done)
}

fn or_none<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".into(), ToString::to_string)
}

fn row(view: &LaneView) -> Vec<String> {
    let head = view.head.as_ref();
    vec![
        view.name.to_string(),
        view.live.to_string(),
        if view.paused { "yes" } else { "-" }.into(),
        or_none(head.map(|head| &head.id)),
        or_none(head.map(|head| &head.state)),
        or_none(head.and_then(|head| head.holder.as_ref())),
        or_none(head.and_then(|head| head.until.as_ref())),
    ]
}

async fn view(store: &dyn Store, namespace: &Namespace, lane: &Label) -> Result<LaneView> {
    let filter = LaneFilter { name: Some(lane.clone()), ..LaneFilter::all(namespace.clone()) };
    let view = store.lanes(filter).await?.pop();
    Ok(view.ok_or_else(|| {
        let fault = Error::not_found("lane", lane.as_str()).to_string();
        Fault::new(Exit::NotFound, fault).hint("a lane is there while it has live items, or is paused")
    })?)
}

async fn show(settings: &Settings, printer: &Printer, args: &LaneArgs) -> Result<Exit> {
    let (namespace, lane) = (args.queue.the_namespace()?, Label::new("lane", &args.lane)?);
    let store = settings.open(printer).await?;
    let view = view(store.as_ref(), &namespace, &lane).await?;
    let members = members(store.as_ref(), &namespace, &lane, view.live).await?;
    if printer.is_json() {
        for found in &members {
            printer.json(&Item::new(&found.namespace, &found.job))?;
        }
        return Ok(Exit::Done);
    }
    let paused = view.pause.as_ref().map(|pause| format!(", {pause}")).unwrap_or_default();
    printer.complain(&format!("live items: {}{paused}", view.live));
    let row = |found: &Found| {
        let standing = &found.job.standing;
        let holder = standing.claimed_by.as_ref().filter(|_| standing.state.is_held());
        vec![
            found.job.identity.id.to_string(),
            standing.state.to_string(),
            format!("{}/{}", standing.attempts, standing.max_attempts),
            or_none(found.job.identity.key.as_ref()),
            or_none(holder),
            or_none(standing.due_at().as_ref()),
        ]
    };
    printer
        .table(&["ID", "STATE", "ATTEMPTS", "KEY", "HELD BY", "UNTIL"], &members.iter().map(row).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}

/// The live items of a lane, in order.
async fn members(store: &dyn Store, namespace: &Namespace, lane: &Label, live: u64) -> Result<Vec<Found>> {
    let mut filter = JobFilter {
        namespace: Some(namespace.clone()),
        lane: Some(lane.clone()),
        limit: 1_000,
        ..JobFilter::default()
    };
    let live = usize::try_from(live).unwrap_or(usize::MAX);
    let mut members = Vec::new();
    while members.len() < live {
        let page = store.jobs(filter.clone()).await?;
        members.extend(page.jobs.into_iter().filter(|found| !found.job.standing.state.is_final()));
        match page.next {
            Some(next) => filter.after_row = Some(next),
            None => break,
        }
    }
    members.sort_by_key(|found| found.job.standing.place);
    Ok(members)
}

async fn hold(settings: &Settings, printer: &Printer, args: &LaneWhyArgs, paused: bool) -> Result<Exit> {
    let lane = Label::new("lane", &args.lane.lane)?;
    let hold = Hold {
        namespace: args.lane.queue.the_namespace()?,
        lane: Some(lane.clone()),
        paused,
        actor: act::actor(args.why.actor.as_deref())?,
        reason: args.why.reason.clone(),
    };
    settings.open(printer).await?.hold(hold).await?;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "lane": lane, "paused": paused }))?;
    } else {
        let word = if paused { "paused" } else { "open again" };
        printer.line(&format!("the lane {:?} is {word}", lane.as_str()))?;
    }
    Ok(Exit::Done)
}

async fn skip(settings: &Settings, printer: &mut Printer, args: &SkipArgs) -> Result<Exit> {
    let (namespace, lane) = (args.lane.queue.the_namespace()?, Label::new("lane", &args.lane.lane)?);
    let view = view(settings.open(printer).await?.as_ref(), &namespace, &lane).await?;
    let head: Option<(JobId, State)> = view.head.map(|head| (head.id, head.state));
    let Some(head) = head else {
        let message = format!("the lane {:?} has no live item", lane.as_str());
        return Err(Fault::new(Exit::Refused, message).into());
    };
    act::skip(settings, printer, (namespace, head), args).await
}
