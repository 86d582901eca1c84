//! Telling the ledger that the robot is there, from before the process starts until its job is settled.

use std::sync::Arc;
use std::time::Duration;

use acta_core::store::{Claimant, Heartbeats};
use acta_core::{Error, JobId, Namespace, Span, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often, at the least; so a cancel reaches the robot soon.
const PERIOD: Duration = Duration::from_secs(2);

/// What a heartbeat brought back.
#[derive(Debug)]
pub(super) enum Word {
    /// Somebody wants the job stopped.
    CancelRequested,
    /// Somebody else has the job.
    Lost(Error),
    /// The ledger is out of reach.
    NotHeard(Error),
}

/// Heartbeats of one claim, in a task of their own: nothing that the robot waits for keeps them back.
#[derive(Debug)]
pub(super) struct Heart {
    task: JoinHandle<()>,
    words: mpsc::Receiver<Word>,
}

impl Heart {
    /// Begins to beat, at a third of the lease or more often.
    pub(super) fn start(
        store: Arc<dyn Store>,
        namespace: Namespace,
        id: JobId,
        claimant: Claimant,
        lease: Span,
    ) -> Self {
        let (sender, words) = mpsc::channel(16);
        let period = PERIOD.min(lease.to_std() / 3).max(Duration::from_millis(10));
        let task = tokio::spawn(async move {
            let mut beat = tokio::time::interval(period);
            beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut is_told = false;
            loop {
                beat.tick().await;
                let beats = vec![(id.clone(), claimant.clone())];
                let answer = store
                    .heartbeat(Heartbeats { namespace: namespace.clone(), beats, lease: None, worker: None })
                    .await;
                let word = match answer.map(|mut answers| answers.pop()) {
                    Ok(Some(Ok(beat))) if beat.cancel_requested && !is_told => {
                        is_told = true;
                        Word::CancelRequested
                    }
                    Ok(Some(Ok(_)) | None) => continue,
                    Ok(Some(Err(fault))) => Word::Lost(fault),
                    Err(fault) => Word::NotHeard(fault),
                };
                let is_over = matches!(word, Word::Lost(_));
                if sender.send(word).await.is_err() || is_over {
                    return;
                }
            }
        });
        Self { task, words }
    }

    /// What the next telling heartbeat brings.
    pub(super) async fn word(&mut self) -> Word {
        match self.words.recv().await {
            Some(word) => word,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.task.abort();
    }
}
