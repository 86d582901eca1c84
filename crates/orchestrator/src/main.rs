//! `orchestrator`: job queues on a durable ledger, from the command line.

mod args;
mod commands;
mod exit;
mod jobdef;
mod printer;
mod robot;
mod settings;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches};

use args::Args;
use exit::Exit;
use printer::Printer;
use settings::Settings;

fn main() -> ExitCode {
    let parsed = Args::command()
        .try_get_matches()
        .and_then(|matches| Args::from_arg_matches(&matches).map(|args| (args, matches)));
    let (args, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(told) => {
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let mut printer = Printer::new(args.json);
    let outcome = Settings::of(&args, &matches).and_then(|settings| run(&settings, args, &mut printer));
    printer.finish();
    match outcome {
        Ok(exit) => exit.into(),
        Err(fault) => exit::report(&fault, &mut printer).into(),
    }
}

fn run(settings: &Settings, args: Args, printer: &mut Printer) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(commands::run(settings, args.command, printer))
}
