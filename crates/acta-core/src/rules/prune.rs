//! Forgetting what ended long ago.

use super::Rules;
use crate::error::Result;
use crate::policy::{MINUTES_KEPT, TOMBSTONE, WORKER_KEPT};
use crate::rows::{KeyRecord, Rows};
use crate::vitals::first_minute;

impl<R: Rows> Rules<'_, R> {
    /// Removes ended jobs after their retention, and keys after their tombstone; how many of each. What is kept of minutes
    /// and of workers goes with them, as many at the most.
    pub fn prune(&mut self, limit: usize) -> Result<(usize, usize)> {
        let ended = self.rows.prunable(self.now, limit)?;
        for (row, standing) in &ended {
            let identity = self.rows.identity(*row)?;
            if let Some(key) = &identity.dedup_key
                && let Some(record) = self.rows.key(key)?
                && record.id == identity.id
            {
                let end = standing.finished_at.unwrap_or(self.now);
                let expires_at = Some(end.plus_ms(TOMBSTONE.as_millis()));
                self.rows.save_key(key, &KeyRecord { state: standing.state, expires_at, ..record })?;
            }
            self.rows.delete(*row)?;
            self.count(Some(standing.tally()), None);
        }
        let keys = self.rows.remove_expired_keys(self.now, limit)?;
        self.rows.remove_minutes(first_minute(self.now, MINUTES_KEPT), limit)?;
        self.rows.remove_workers(self.now.plus_ms(-WORKER_KEPT.as_millis()), limit)?;
        Ok((ended.len(), keys))
    }
}
