//! What must be true of any ledger at any time.

use std::collections::{BTreeMap, BTreeSet};

use acta_core::job::Tally;
use acta_core::store::{Found, JobFilter, LaneFilter};
use acta_core::{Error, Store};

/// Looks at the whole ledger; what is wrong, in words.
pub async fn violations(store: &dyn Store) -> Result<Vec<String>, Error> {
    let jobs = all_jobs(store).await?;
    let mut wrong = Vec::new();
    let mut ids = BTreeSet::new();
    let mut lanes: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    let mut counts: BTreeMap<(String, Tally), u64> = BTreeMap::new();
    let mut places = BTreeSet::new();
    for Found { namespace, job } in &jobs {
        let standing = &job.standing;
        if !ids.insert(job.identity.id.clone()) {
            wrong.push(format!("{} is there twice", job.identity.id));
        }
        if !places.insert((namespace.to_string(), standing.place)) {
            wrong.push(format!("two jobs have the place {} in {namespace}", standing.place));
        }
        if standing.fence < u64::from(standing.attempts) {
            wrong.push(format!("{} has more attempts than claims", job.identity.id));
        }
        *counts.entry((namespace.to_string(), standing.tally())).or_default() += 1;
        if let (Some(lane), false) = (&job.identity.lane, standing.state.is_final()) {
            let entry = lanes.entry((namespace.to_string(), lane.to_string())).or_default();
            entry.0 += usize::from(standing.state.is_head());
            entry.1 += 1;
        }
    }
    for ((namespace, lane), (heads, live)) in &lanes {
        if *heads != 1 {
            wrong.push(format!("lane {lane:?} of {namespace} has {heads} heads among {live} live members"));
        }
    }
    for (queue, tallies) in store.queues().await?.queues {
        let path = queue.namespace.to_string();
        let counted: BTreeMap<Tally, u64> =
            counts.iter().filter(|((of, _), _)| *of == path).map(|((_, tally), count)| (*tally, *count)).collect();
        if counted != tallies {
            wrong.push(format!("{path} has {counted:?}, but counts {tallies:?}"));
        }
        for lane in store.lanes(LaneFilter::all(queue.namespace.clone())).await? {
            let live = lanes.get(&(path.clone(), lane.name.to_string())).map_or(0, |(_, live)| *live as u64);
            if live != lane.live {
                wrong.push(format!(
                    "lane {:?} of {path} has {live} live members, but counts {}",
                    lane.name.as_str(),
                    lane.live
                ));
            }
        }
    }
    Ok(wrong)
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
