//! `orchestrator`: job queues on a durable ledger, from the command line.

mod args;
mod commands;
mod exit;
mod jobdef;
mod printer;
mod robot;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use exit::Exit;
use printer::Printer;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(told) => {
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let mut printer = Printer::new(args.json);
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(commands::run(args, &mut printer)));
    printer.finish();
    match outcome {
        Ok(exit) => exit.into(),
        Err(fault) => exit::report(&fault, &mut printer).into(),
    }
}
