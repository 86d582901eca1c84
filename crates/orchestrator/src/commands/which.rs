//! Which jobs a command is about.

use acta_core::Label;
use acta_core::store::JobFilter;
use anyhow::Result;

use crate::args::WhichArgs;
use crate::settings::Settings;

impl WhichArgs {
    /// Whether anything is said.
    pub(crate) fn says_something(&self) -> bool {
        let Self { queue, status, lane, key, since } = self;
        let of_queue = [&queue.queue, &queue.transactions, &queue.namespace];
        of_queue.into_iter().chain([status, lane, key, since]).any(Option::is_some)
    }

    /// The filter that is meant, for pages of `limit`.
    pub(crate) fn filter(&self, settings: &Settings, limit: usize) -> Result<JobFilter> {
        let label = |what, text: &Option<String>| text.as_deref().map(|text| Label::new(what, text)).transpose();
        let filter = JobFilter {
            namespace: self.queue.namespace()?,
            status: self.status.clone(),
            lane: label("lane", &self.lane)?,
            key: label("key", &self.key)?,
            since: self.since.as_deref().map(|text| settings.instant_gone_by("--since", text)).transpose()?,
            after_row: None,
            limit,
        };
        filter.check()?;
        Ok(filter)
    }
}
