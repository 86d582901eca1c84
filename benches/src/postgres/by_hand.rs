//! Claims and settles one by one, through the store: where a single call is to be measured.

use std::sync::Arc;

use acta::Ledger;
use acta_core::store::{Claim, ClaimOutcome, Claimant, Outcome, Settlement, Wave};
use acta_core::{Job, Label, Namespace, Store};
use anyhow::{Result, bail};

/// Somebody who claims.
pub struct ByHand {
    store: Arc<dyn Store>,
    namespace: Namespace,
    robot: Label,
}

impl ByHand {
    /// Claims from this ledger.
    pub fn new(ledger: &Ledger) -> Result<Self> {
        let (namespace, robot) = ("bench".parse()?, Label::new("robot", "bench")?);
        Ok(Self { store: Arc::clone(ledger.store()), namespace, robot })
    }

    /// Claims so many jobs, which must be there.
    pub async fn claim(&self, count: usize) -> Result<Vec<Job>> {
        let claim = Claim { count, ..Claim::one(self.namespace.clone(), self.robot.clone()) };
        match self.store.claim(claim).await?.outcome {
            ClaimOutcome::Claimed(jobs) if jobs.len() == count => Ok(jobs),
            other => bail!("{count} ready jobs, not {other:?}"),
        }
    }

    /// Settles them as done.
    pub async fn settle(&self, jobs: &[Job]) -> Result<()> {
        let done = |job: &Job| Settlement {
            id: job.identity.id.clone(),
            claimant: Claimant::fence(job.standing.fence),
            outcome: Outcome::Succeeded(None),
        };
        let settlements = jobs.iter().map(done).collect();
        for answer in self.store.settle(Wave { namespace: self.namespace.clone(), settlements }).await? {
            answer?;
        }
        Ok(())
    }
}
