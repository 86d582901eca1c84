//! The signals that mean "stop".

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, a polite end from outside, and a closed terminal: all mean "stop".
pub(crate) struct Interrupts {
    int: Signal,
    term: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Interrupts {
    /// From now on these signals do not end the process.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}
