//! A process of its own group: started with a clean environment, listened to, and ended as a group.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What a process keeps of our own environment: where programs are, who and where the user is. No secret of ours.
const KEPT: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL"];
/// How long a closed process's output may still come from its children.
const DRAIN: Duration = Duration::from_secs(1);
/// The longest line that is kept whole, in bytes.
const MOST_LINE: usize = 64 * 1024;

/// What to start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: String,
}

/// A running process and what it writes.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    lines: mpsc::Receiver<Line>,
    is_silent: bool,
}

/// A line of output.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// What happened next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It wrote a line.
    Wrote(Line),
    /// It ended.
    Ended(ExitStatus),
}

impl Process {
    /// Starts the process as the leader of a new group.
    pub(crate) fn start(start: Start) -> Result<Self> {
        let mut command = Command::new(&start.program);
        command
            .args(&start.arguments)
            .current_dir(&start.cwd)
            .env_clear()
            .envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(&start.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .with_context(|| format!("{:?} can't be started in {}", start.program, start.cwd.display()))?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(mut stdin) = child.stdin.take() {
            tokio::spawn(async move {
                // A process that does not read its input is no fault.
                let _ = stdin.write_all(start.stdin.as_bytes()).await;
            });
        }
        let (sender, lines) = mpsc::channel(256);
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(pump(stdout, false, sender.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(pump(stderr, true, sender));
        }
        Ok(Self { child, group, lines, is_silent: false })
    }

    /// Waits for the next line or the process's end, whichever comes first: its children may hold its output open.
    pub(crate) async fn next(&mut self) -> Result<Next> {
        loop {
            tokio::select! {
                line = self.lines.recv(), if !self.is_silent => match line {
                    Some(line) => return Ok(Next::Wrote(line)),
                    None => self.is_silent = true,
                },
                status = self.child.wait() => return Ok(Next::Ended(status?)),
            }
        }
    }

    /// How it ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until nobody of the group is left, for so long at the most.
    pub(crate) async fn group_is_gone(&self, within: Duration) {
        let end = Instant::now() + within;
        while self.group_is_alive() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What came after the end, for a moment.
    pub(crate) async fn last_lines(&mut self) -> Vec<Line> {
        let end = Instant::now() + DRAIN;
        let mut last = Vec::new();
        while let Ok(Some(line)) = tokio::time::timeout_at(end, self.lines.recv()).await {
            last.push(line);
        }
        last
    }

    /// Asks the whole group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the whole group at once.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The next line while anybody of the group is alive, at most until `end`.
    pub(crate) async fn line_of_group(&mut self, end: Instant) -> Option<Line> {
        while self.group_is_alive() && Instant::now() < end {
            tokio::select! {
                line = self.lines.recv(), if !self.is_silent => match line {
                    Some(line) => return Some(line),
                    None => self.is_silent = true,
                },
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
        None
    }

    fn group_is_alive(&self) -> bool {
        self.group.is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Nobody waits for it any more: its group ends with it. One that has ended is left alone, for its number may be
/// somebody else's by now.
impl Drop for Process {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            self.kill();
        }
    }
}

/// Reads lines until the end; what is no UTF-8 is replaced, what is too long is cut.
async fn pump(from: impl AsyncRead + Unpin, is_error: bool, to: mpsc::Sender<Line>) {
    let mut reader = BufReader::new(from);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if read_line(&mut reader, &mut bytes).await.is_none() {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
        if to.send(Line { text, is_error }).await.is_err() {
            return;
        }
    }
}

/// One line into `bytes`, at most [`MOST_LINE`] of it; `None` at the end.
async fn read_line(reader: &mut BufReader<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> Option<()> {
    loop {
        let available = reader.fill_buf().await.ok()?;
        if available.is_empty() {
            return (!bytes.is_empty()).then_some(());
        }
        let (end, is_whole) = match available.iter().position(|&byte| byte == b'\n') {
            Some(index) => (index + 1, true),
            None => (available.len(), false),
        };
        let room = MOST_LINE.saturating_sub(bytes.len());
        bytes.extend_from_slice(&available[..end.min(room)]);
        reader.consume(end);
        if is_whole {
            return Some(());
        }
    }
}
