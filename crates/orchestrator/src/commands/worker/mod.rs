//! `worker`: work off a queue with robots on this machine.
//!
//! The library's worker claims, keeps leases and settles; what runs a job here is a process for each.

mod crew;
mod jobdefs;
mod news;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use acta::{Context, Ledger, Worker};
use acta_core::store::Define;
use anyhow::Result;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::crew::Crew;
use self::news::{News, Teller};
use crate::args::WorkerArgs;
use crate::exit::Exit;
use crate::jobdef::Jobdef;
use crate::printer::Printer;
use crate::robot::{Interrupts, LogFile, STOPPING, robot_name};
use crate::settings::Settings;

/// How long a job runs without a heartbeat at the most: a cancel reaches it that soon.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long the ledger may take to hear that jobs were given back, once everything was killed.
const LAST_WORDS: Duration = Duration::from_secs(3);

pub(crate) async fn worker(settings: &Settings, printer: &mut Printer, args: &WorkerArgs) -> Result<Exit> {
    let printer = &*printer;
    let namespace = args.queue.the_namespace()?;
    let robot = robot_name(args.robot.as_deref())?;
    let jobdefs = jobdefs::load(settings, printer, &args.jobdefs, &namespace)?;
    let mut interrupts = Interrupts::listen()?;
    LogFile::prepare(&settings.logs())?;
    let store = settings.open_or_make().await?;
    for jobdef in &jobdefs {
        // Before the first claim: its lease is what the definition says.
        store.define(Define::Job(jobdef.definition())).await?;
    }
    let (news, mut hear) = mpsc::unbounded_channel();
    let (kill, is_over) = watch::channel(false);
    let ledger = Ledger::by_clock(store, Arc::clone(settings.clock()));
    let queue = namespace.to_string();
    let crew = Crew { namespace, robot: robot.clone(), logs: settings.logs(), is_over, news: news.clone() };
    let worker = set_up(&ledger, &queue, args, crew, jobdefs)
        .named(robot.as_str())
        .on_note(move |note| drop(news.send(News::Note(note.clone()))));
    let (shut_down, shutting_down) = oneshot::channel();
    let mut running = pin!(worker.run(async { drop(shutting_down.await) }));
    let mut teller = Teller::new(printer, Arc::clone(settings.clock()));
    let mut shut_down = Some(shut_down);
    let mut give_up_at: Option<Instant> = None;
    let ended = loop {
        tokio::select! {
            ended = &mut running => break ended,
            Some(news) = hear.recv() => teller.tell(news)?,
            () = interrupts.next() => if let Some(shut_down) = shut_down.take() {
                let (running, grace) = (teller.running(), args.grace);
                printer.news(&format!("shutting down: {running} running, {grace} to finish (once more to kill)"));
                // It is heard, or the worker has ended.
                let _ = shut_down.send(());
            } else {
                kill.send_replace(true);
                give_up_at = give_up_at.or(Some(Instant::now() + LAST_WORDS));
            },
            () = tokio::time::sleep_until(give_up_at.unwrap_or_else(Instant::now)), if give_up_at.is_some() => {
                break Ok(());
            }
        }
    };
    while let Ok(news) = hear.try_recv() {
        teller.tell(news)?;
    }
    ended?;
    let had_nothing = teller.began() == 0;
    teller.close()?;
    Ok(match give_up_at {
        Some(_) => Exit::Interrupted,
        None if args.once && shut_down.is_some() && had_nothing => Exit::Nothing,
        None => Exit::Done,
    })
}

fn set_up(ledger: &Ledger, queue: &str, args: &WorkerArgs, crew: Crew, jobdefs: Vec<Jobdef>) -> Worker {
    let crew = Arc::new(crew);
    let mut worker = Worker::new(ledger, queue)
        .concurrency(usize::from(args.robots))
        .grace(args.grace.to_std())
        .notice(STOPPING)
        .poll(args.poll.to_std())
        .heartbeat(HEARTBEAT);
    for jobdef in jobdefs {
        let (crew, definition, jobdef) = (Arc::clone(&crew), jobdef.definition(), Arc::new(jobdef));
        worker = worker.handle_raw(definition, move |context: Context| {
            let (crew, jobdef) = (Arc::clone(&crew), Arc::clone(&jobdef));
            async move { crew.work(&jobdef, context).await }
        });
    }
    if args.once { worker.until_idle() } else { worker }
}
