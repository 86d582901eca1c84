//! What a run is told while its process runs: by signals, and by heartbeats.

use acta_core::{Error, JobId};

use super::heartbeat::{Heart, Word};
use crate::printer::Printer;
use crate::robot::{Interrupts, Order, Orders, Stop};

/// Signals to this process, and what heartbeats bring.
pub(super) struct RunOrders<'a> {
    printer: &'a Printer,
    heart: &'a mut Heart,
    interrupts: &'a mut Interrupts,
    lost: Option<Error>,
    /// Whether a signal came, for whatever reason the process was ended.
    pub(super) is_interrupted: bool,
}

impl<'a> RunOrders<'a> {
    pub(super) fn new(printer: &'a Printer, heart: &'a mut Heart, interrupts: &'a mut Interrupts) -> Self {
        Self { printer, heart, interrupts, lost: None, is_interrupted: false }
    }

    /// What the heartbeat brought that found the claim lost.
    pub(super) fn lost(self, id: &JobId) -> Error {
        self.lost.unwrap_or_else(|| Error::not_found("job", id.as_str()))
    }
}

impl Orders for RunOrders<'_> {
    async fn next(&mut self) -> Order {
        loop {
            tokio::select! {
                word = self.heart.word() => match word {
                    Word::NotHeard(fault) => self.printer.complain(&format!("warning: no heartbeat: {fault}")),
                    Word::CancelRequested => {
                        self.printer.complain("its cancel was requested; stopping it");
                        return Order::Stop(Stop::CancelRequested);
                    }
                    Word::Lost(fault) => {
                        self.lost = Some(fault);
                        // Somebody else may be running the job already.
                        return Order::Kill(Stop::Lost);
                    }
                },
                () = self.interrupts.next() => {
                    if !std::mem::replace(&mut self.is_interrupted, true) {
                        self.printer.complain("interrupted; stopping the job (once more to kill it)");
                    }
                    return Order::Stop(Stop::Interrupted);
                }
            }
        }
    }
}
