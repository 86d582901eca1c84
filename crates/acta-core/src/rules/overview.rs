//! What a namespace is like: how many jobs, who works, how much happens.

use super::Rules;
use crate::error::Result;
use crate::explain::Pause;
use crate::policy::MOST_WORKERS;
use crate::rows::Rows;
use crate::store::{Overview, QueueFilter};
use crate::vitals::{Activity, WorkerView, first_minute};

impl<R: Rows> Rules<'_, R> {
    /// Adds the namespace to an overview.
    pub fn overview(&mut self, filter: &QueueFilter, overview: &mut Overview) -> Result<()> {
        let tallies = self.rows.tallies()?;
        let queue = self.rows.queue().clone();
        if queue.paused
            && let Some(entry) = self.rows.last_hold(None)?
        {
            overview.pauses.insert(queue.namespace.clone(), Pause::from(&entry));
        }
        if let Some(minutes) = filter.activity {
            overview.activity.insert(queue.namespace.clone(), self.activity(minutes)?);
        }
        overview.queues.push((queue, tallies));
        Ok(())
    }

    fn activity(&mut self, minutes: usize) -> Result<Activity> {
        let at = self.now;
        let minutes = if minutes == 0 { Vec::new() } else { self.rows.minutes(first_minute(at, minutes))? };
        let mut workers = self.rows.workers(MOST_WORKERS)?;
        workers.sort_by(|one, other| (one.started_at, &one.card.id).cmp(&(other.started_at, &other.card.id)));
        let view = |worker: crate::vitals::Registered| WorkerView { lost: worker.is_lost(at), worker };
        Ok(Activity { at, workers: workers.into_iter().map(view).collect(), minutes })
    }
}
