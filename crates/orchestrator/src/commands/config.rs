//! `config show`, `completions`, `man`: what the program says of itself.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::Args;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) fn show(settings: &Settings, printer: &Printer) -> Result<Exit> {
    if printer.is_json() {
        for (name, value, origin) in settings.origins() {
            printer.json(&serde_json::json!({ "name": name, "value": value, "from": origin.word() }))?;
        }
        return Ok(Exit::Done);
    }
    let row = |(name, value, origin): &(&str, String, crate::settings::Origin)| {
        vec![(*name).to_owned(), value.clone(), origin.word().to_owned()]
    };
    printer.table(&["SETTING", "VALUE", "FROM"], &settings.origins().iter().map(row).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "orchestrator", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Done)
}

pub(crate) fn man(printer: &Printer, folder: &Path) -> Result<Exit> {
    let wrong = || folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(wrong)?;
    clap_mangen::generate_to(Args::command(), folder).with_context(wrong)?;
    printer.complain(&format!(
        "the manual pages are in {}; `man -l {}/orchestrator.1` shows the first",
        wrong(),
        wrong()
    ));
    Ok(Exit::Done)
}
