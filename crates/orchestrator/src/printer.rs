//! The one way to the terminal: data to stdout, all else to stderr, and nothing of a payload unescaped.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use anyhow::Result;
use serde::Serialize;

/// Where commands print to.
#[derive(Debug)]
pub(crate) struct Printer {
    json: bool,
    to_terminal: bool,
    errors_to_terminal: bool,
    live: OnceLock<Live>,
}

/// Where a line goes.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Out,
    Err,
}

/// What prints lines while jobs run: a thread of its own, so that a terminal that does not scroll holds nothing else up.
#[derive(Debug)]
struct Live {
    lines: SyncSender<(Stream, String)>,
    thread: JoinHandle<()>,
}

/// How many lines may wait to be printed; what comes beyond is not. A job's output is in its log all the same.
const MOST_WAITING: usize = 4_096;

impl Live {
    fn start() -> Self {
        let (lines, receiver) = sync_channel(MOST_WAITING);
        let thread = std::thread::spawn(move || {
            for (stream, line) in receiver {
                let _ = match stream {
                    Stream::Out => writeln!(std::io::stdout().lock(), "{line}"),
                    Stream::Err => writeln!(std::io::stderr().lock(), "{line}"),
                };
            }
        });
        Self { lines, thread }
    }
}

#[expect(clippy::unused_self, reason = "whoever prints has been handed the printer")]
impl Printer {
    /// A printer to this process's stdout and stderr.
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            to_terminal: std::io::stdout().is_terminal(),
            errors_to_terminal: std::io::stderr().is_terminal(),
            live: OnceLock::new(),
        }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// A line of data, for people.
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        writeln!(std::io::stdout().lock(), "{}", safe(text))?;
        Ok(())
    }

    /// A line of data, for programs.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<()> {
        writeln!(std::io::stdout().lock(), "{}", self.json_line(value)?)?;
        Ok(())
    }

    fn json_line(&self, value: &impl Serialize) -> Result<String> {
        let text = serde_json::to_string(value)?;
        // A line break can only stand between tokens, where a space means the same: one value is one line.
        let text = text.replace(['\n', '\r'], " ");
        // All else that a terminal obeys stands in strings alone, where an escape means the same.
        Ok(if self.to_terminal { escaped(&text, json_escape) } else { text })
    }

    /// Rows under headings. The cells may hold any text.
    pub(crate) fn table(&self, headings: &[&str], rows: &[Vec<String>]) -> Result<()> {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING).set_header(headings.to_vec());
        for row in rows {
            table.add_row(row.iter().map(|cell| safe(cell).into_owned()));
        }
        let lines: Vec<String> = table.lines().collect();
        let mut out = std::io::stdout().lock();
        let width = lines.iter().map(|line| line.trim_end().chars().count()).max().unwrap_or_default();
        if self.columns().is_none_or(|columns| width <= columns) {
            for line in lines {
                writeln!(out, "{}", line.trim())?;
            }
            return Ok(());
        }
        // Too wide for this terminal: a block a row.
        let name = headings.iter().map(|heading| heading.len()).max().unwrap_or_default();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            for (heading, cell) in headings.iter().zip(row) {
                writeln!(out, "{heading:<name$}  {}", safe(cell))?;
            }
        }
        Ok(())
    }

    /// How wide the terminal is, where stdout is one.
    fn columns(&self) -> Option<usize> {
        if !self.to_terminal {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
    }

    /// What a job wrote, as data.
    pub(crate) fn log(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for line in text.lines() {
            let line = if self.to_terminal { safe(line) } else { Cow::Borrowed(line) };
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// What a job writes while it runs: not data of this command.
    pub(crate) fn live(&self, line: &str) {
        let line = if self.errors_to_terminal { safe(line) } else { Cow::Borrowed(line) };
        self.soon(Stream::Err, line.into_owned());
    }

    /// A line about jobs that run, for people; it holds nobody up.
    pub(crate) fn news(&self, text: &str) {
        self.soon(Stream::Err, safe(text).into_owned());
    }

    /// A line about jobs that run, for programs; it holds nobody up.
    pub(crate) fn json_news(&self, value: &impl Serialize) -> Result<()> {
        self.soon(Stream::Out, self.json_line(value)?);
        Ok(())
    }

    fn soon(&self, stream: Stream, line: String) {
        let _ = self.live.get_or_init(Live::start).lines.try_send((stream, line));
    }

    /// Waits until everything is printed.
    pub(crate) fn finish(&mut self) {
        if let Some(Live { lines, thread }) = self.live.take() {
            drop(lines);
            let _ = thread.join();
        }
    }

    /// Something to know, or to complain about.
    pub(crate) fn complain(&self, text: &str) {
        for line in text.lines() {
            let _ = writeln!(std::io::stderr().lock(), "{}", safe(line));
        }
    }
}

/// Whether a character could move the cursor, change colours or turn the reading direction.
fn is_hostile(character: char) -> bool {
    let is_tab = character == '\t';
    (character.is_control() && !is_tab)
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, escape: fn(char) -> String) -> String {
    let each = |character| if is_hostile(character) { escape(character) } else { String::from(character) };
    text.chars().map(each).collect()
}

fn json_escape(character: char) -> String {
    format!("\\u{:04x}", u32::from(character))
}

/// The text, with every character that a terminal would obey written out.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hostile) {
        Cow::Owned(escaped(text, |character| character.escape_unicode().collect()))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(safe("a\u{1b}[2J\u{9b}1m\u{202e}b\r\n"), "a\\u{1b}[2J\\u{9b}1m\\u{202e}b\\u{d}\\u{a}");
        assert_eq!(safe("名前\tü"), "名前\tü");
    }
}
