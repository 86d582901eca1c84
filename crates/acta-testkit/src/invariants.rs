//! What must be true of any ledger at any time.

use acta_core::store::{Finding, Found, JobFilter, QueueFilter};
use acta_core::{Error, Store, audit};

/// Looks at the whole ledger; what is wrong, in words.
pub async fn violations(store: &dyn Store) -> Result<Vec<String>, Error> {
    let overview = store.queues(QueueFilter::default()).await?;
    let mut wrong: Vec<Finding> = store.examine().await?;
    let mut whole = audit::Whole::default();
    for (queue, tallies) in &overview.queues {
        if let Some(contents) = store.export(Some(queue.namespace.clone())).await?.contents {
            wrong.extend(audit::contradictions(&contents, tallies));
            wrong.extend(whole.add(&contents));
        }
    }
    let told = wrong.into_iter().map(|Finding { place, what, .. }| format!("{place}: {what}"));
    Ok(overview.unreadable.iter().map(ToString::to_string).chain(told).collect())
}

/// Every job of the ledger.
pub async fn all_jobs(store: &dyn Store) -> Result<Vec<Found>, Error> {
    let mut jobs = Vec::new();
    let mut after_row = None;
    loop {
        let page = store.jobs(JobFilter { after_row, limit: 1_000, ..JobFilter::default() }).await?;
        jobs.extend(page.jobs);
        match page.next {
            Some(next) => after_row = Some(next),
            None => return Ok(jobs),
        }
    }
}
